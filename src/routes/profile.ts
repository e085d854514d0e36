import Type from 'typebox'
import { isPasswordOf, noPassword } from '../accounts/password.ts'
import { forgetAccount } from '../calls/cancel-account-calls.ts'
import type { Context } from '../context.ts'
import { deleteAccount } from '../db/delete-account.ts'
import { findUser } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { CREDENTIALS_BYTES_MAX } from '../http/request/body-limits.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { subscriberOf } from '../throttles/client-network.ts'
import { limitGuesses } from '../throttles/login-delay.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const Profile = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the account' }),
    email: Type.String({ description: 'Email address of the account' }),
    tier: Type.String({ description: 'Tier of the account' }),
    termsAcceptedAt: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'When the terms of the service were accepted; null: not recorded',
    }),
  },
  { title: 'User' },
)

const LeaveBody = Type.Object(
  { password: Type.String({ maxLength: 100_000, description: 'Password of the account' }) },
  OPEN_BODY,
)

/** The logged-in account: its data and its deletion. */
export async function profileRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  const me = {
    schema: { summary: 'Your profile', tags: ['Accounts'], response: { 200: Profile } },
  }
  app.get('/v1/me', me, async (request) => {
    const { id, email, tier, terms_accepted_at } = sessionOf(request).user
    return { id, email, tier, termsAcceptedAt: terms_accepted_at?.toISOString() ?? null }
  })

  const leave = {
    bodyLimit: CREDENTIALS_BYTES_MAX,
    config: { errors: ['INVALID_CREDENTIALS', 'TEAM_OWNER', 'LOGIN_THROTTLED'] as const },
    schema: {
      operationId: 'deleteAccount',
      summary: 'Delete your account: the gateway refuses its sessions, keys and applications from now on',
      description:
        'The gateway cancels calls that are under way. Hand over or delete the teams that you own first. Counts of calls are kept under an anonymous id.',
      tags: ['Accounts'],
      body: LeaveBody,
      response: { 204: NoContent },
    },
  }
  app.delete('/v1/me', leave, async (request, reply) => {
    const { user } = sessionOf(request)
    const { password } = request.body
    // With a stolen session nobody should be able to guess the password, so failures count like
    // failures of a log-in.
    await withAnnouncement({ redis: context.redis, log: request.log }, [user.id], () =>
      limitGuesses(context, { email: user.email, address: request.ip }, () =>
        leaveWith(context, { userId: user.id, password, client: subscriberOf(request.ip) }),
      ),
    )
    await forgetAccount(context, user.id)
    return reply.status(204).send()
  })
}

/**
 * @throws GatewayError INVALID_CREDENTIALS for a wrong password, TEAM_OWNER if the account owns
 *   teams
 */
async function leaveWith(
  { db }: Context,
  { userId, password, client }: { userId: string; password: string; client: string },
): Promise<void> {
  const user = await findUser(db, userId)
  const matches = user !== undefined && (await isPasswordOf(user.password_hash, password, client))
  const obstacle = matches ? await deleteAccount(db, user) : 'another password'
  if (obstacle === undefined) return
  if (obstacle === 'another password') {
    if (user?.password_hash === null) throw noPassword('password')
    throw new GatewayError('INVALID_CREDENTIALS', {
      message: 'The password is wrong.',
      hint: 'Enter it again',
      tokens: { param: 'password' },
    })
  }
  throw new GatewayError('TEAM_OWNER', { message: `The account owns teams: ${obstacle.ownedTeams.join(', ')}.` })
}
