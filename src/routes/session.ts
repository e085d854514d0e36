import Type from 'typebox'
import { hashPassword, isAcceptablePassword, isPasswordOf, noPassword } from '../accounts/password.ts'
import type { Context } from '../context.ts'
import type { User } from '../db/schema.ts'
import { revokeSession, revokeSessions } from '../db/sessions.ts'
import { findUser, updatePasswordHash } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { CREDENTIALS_BYTES_MAX } from '../http/request/body-limits.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { announced } from '../limits/account-version.ts'
import { subscriberOf } from '../throttles/client-network.ts'
import { limitGuesses } from '../throttles/login-delay.ts'
import { accountThrottle, checkThrottle, takeThrottle } from '../throttles/throttle.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const PasswordBody = Type.Object(
  {
    currentPassword: Type.String({ maxLength: 100_000, description: 'The password until now' }),
    newPassword: Type.String({ minLength: 8, maxLength: 256, description: '8 to 256 characters, any of them' }),
  },
  OPEN_BODY,
)

/** What someone who is logged in does to the log-in itself: end it, change the password. */
export async function sessionRoutes(app: App, context: Context): Promise<void> {
  const { db, redis } = context
  guardWithSession(app, context)

  const logout = {
    schema: {
      summary: 'Log out: the session is refused from now on',
      tags: ['Accounts'],
      response: { 204: NoContent },
    },
  }
  app.post('/v1/auth/logout', logout, async (request, reply) => {
    const { user, id } = sessionOf(request)
    await announced({ redis, log: request.log }, [user.id], () => revokeSession(db, user.id, id))
    return reply.status(204).send()
  })

  const password = {
    // Two passwords.
    bodyLimit: 2 * CREDENTIALS_BYTES_MAX,
    config: { errors: ['INVALID_CREDENTIALS', 'LOGIN_THROTTLED'] as const },
    schema: {
      operationId: 'changePassword',
      summary: 'Change the password; every other session ends',
      tags: ['Accounts'],
      body: PasswordBody,
      response: { 204: NoContent },
    },
  }
  app.post('/v1/auth/password', password, async (request, reply) => {
    const { newPassword, currentPassword } = request.body
    if (!isAcceptablePassword(newPassword)) {
      throw new GatewayError('VALIDATION_ERROR', {
        message: 'Member newPassword must have 8 to 256 characters.',
        tokens: { param: 'newPassword' },
      })
    }
    const session = sessionOf(request)
    // A stolen session must not be a way to guess the password: failures count like failures of a
    // log-in.
    const client = subscriberOf(request.ip)
    const attempt = () => changePassword(context, session, { currentPassword, newPassword, client })
    await announced({ redis, log: request.log }, [session.user.id], () =>
      limitGuesses(context, { email: session.user.email, address: request.ip }, attempt),
    )
    return reply.status(204).send()
  })
}

/**
 * @throws GatewayError INVALID_CREDENTIALS if the current password is wrong, LOGIN_THROTTLED
 *   after many changes
 */
async function changePassword(
  context: Context,
  session: { user: { id: string }; id: string },
  { currentPassword, newPassword, client }: { currentPassword: string; newPassword: string; client: string },
): Promise<void> {
  const { db, config } = context
  const throttle = accountThrottle('password-change', config, session.user.id)
  await checkThrottle(context, throttle)
  const user = await findUser(db, session.user.id)
  const matches = user && (await isPasswordOf(user.password_hash, currentPassword, client))
  if (!matches) throw wrongPassword(user)
  await takeThrottle(context, throttle)
  const passwordHash = await hashPassword(newPassword, client)
  const isChanged = await db.transaction().execute(async (transaction) => {
    if (!(await updatePasswordHash(transaction, user, passwordHash))) return false
    await revokeSessions(transaction, user.id, session.id)
    return true
  })
  if (!isChanged) throw wrongPassword(user)
}

/** Whoever asks is logged in: neither the address nor the log-in is what is wrong. */
function wrongPassword(user: User | undefined): GatewayError {
  if (user?.password_hash === null) return noPassword('currentPassword')
  return new GatewayError('INVALID_CREDENTIALS', {
    message: 'The current password is wrong.',
    hint: 'Enter it again',
    tokens: { param: 'currentPassword' },
  })
}
