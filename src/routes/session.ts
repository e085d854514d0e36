import Type from 'typebox'
import { hashPassword, isAcceptablePassword, isPasswordOf, noPassword } from '../accounts/password.ts'
import type { Context } from '../context.ts'
import { deleteAccountLinks } from '../db/account-links.ts'
import type { User } from '../db/schema.ts'
import { revokeSession, revokeSessions } from '../db/sessions.ts'
import { findUser, updatePasswordHash } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { CREDENTIALS_BYTES_MAX } from '../http/request/body-limits.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { subscriberOf } from '../throttles/client-network.ts'
import { limitGuesses } from '../throttles/login-delay.ts'
import { accountThrottle, checkThrottle, takeThrottle } from '../throttles/throttle.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const PasswordBody = Type.Object(
  {
    currentPassword: Type.String({ maxLength: 100_000, description: 'The current password' }),
    newPassword: Type.String({
      minLength: 8,
      maxLength: 256,
      description: '8 to 256 characters; any characters are allowed',
    }),
  },
  OPEN_BODY,
)

/** The session of a logged-in account: log out, change the password. */
export async function sessionRoutes(app: App, context: Context): Promise<void> {
  const { db, redis } = context
  guardWithSession(app, context)

  const logout = {
    schema: {
      summary: 'Log out: the gateway refuses the session from now on',
      tags: ['Accounts'],
      response: { 204: NoContent },
    },
  }
  app.post('/v1/auth/logout', logout, async (request, reply) => {
    const { user, id } = sessionOf(request)
    await withAnnouncement({ redis, log: request.log }, [user.id], () => revokeSession(db, user.id, id))
    return reply.status(204).send()
  })

  const password = {
    // The body holds two passwords.
    bodyLimit: 2 * CREDENTIALS_BYTES_MAX,
    config: { errors: ['INVALID_CREDENTIALS', 'LOGIN_THROTTLED'] as const },
    schema: {
      operationId: 'changePassword',
      summary: 'Change the password, and end every other session',
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
    // With a stolen session nobody should be able to guess the password, so failures count like
    // failures of a log-in.
    const client = subscriberOf(request.ip)
    const attempt = () => changePassword(context, session, { currentPassword, newPassword, client })
    await withAnnouncement({ redis, log: request.log }, [session.user.id], () =>
      limitGuesses(context, { email: session.user.email, address: request.ip }, attempt),
    )
    return reply.status(204).send()
  })
}

/**
 * @throws GatewayError INVALID_CREDENTIALS if the current password is wrong; LOGIN_THROTTLED after
 *   many changes
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
    await deleteAccountLinks(transaction, user.id)
    return true
  })
  if (!isChanged) throw wrongPassword(user)
}

/**
 * The refusal of a wrong current password. The usual message speaks of the log-in, which is not
 * wrong here.
 */
function wrongPassword(user: User | undefined): GatewayError {
  if (user?.password_hash === null) return noPassword('currentPassword')
  return new GatewayError('INVALID_CREDENTIALS', {
    message: 'The current password is wrong.',
    hint: 'Enter it again',
    tokens: { param: 'currentPassword' },
  })
}
