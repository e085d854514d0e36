import Type from 'typebox'
import { isUuid } from '../accounts/uuid.ts'
import type { CancelAccountDeps } from '../calls/cancel-account-calls.ts'
import type { Context } from '../context.ts'
import { searchUsers } from '../db/users.ts'
import { IdParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { actorOf } from '../operator/actor.ts'
import { describeUser, noSuchUser, UserAnswer, UserChange, UsersAnswer } from '../operator/change-user.ts'
import { makeResetLink, ResetLink } from '../operator/reset-link.ts'
import { ResetPassword, resetPassword } from '../operator/reset-password.ts'
import { changeAccount } from './change-account.ts'

type OperatorUserDeps = CancelAccountDeps & Pick<Context, 'config'>

const USERS_MAX = 100

const UsersQuery = Type.Object({
  email: Type.Optional(Type.String({ maxLength: 254, description: 'A part of the email address, or the whole id' })),
  unapproved: Type.Optional(
    Type.Enum(['true'], { description: 'true: only accounts that no operator has approved or disabled' }),
  ),
})
const tags = ['Operator']

/** Accounts in the operator API. It has no guard of its own, so register it inside a guard. */
export async function operatorUserRoutes(app: App, deps: OperatorUserDeps): Promise<void> {
  refuseIllFormedQueries(app)
  const { db, redis } = deps
  const { signup } = deps.config.accounts
  const find = {
    schema: {
      summary:
        'Find accounts by a part of their email address, or by id. An exact match comes first, then the newest accounts',
      tags,
      querystring: UsersQuery,
      response: { 200: UsersAnswer },
    },
  }
  app.get('/v1/operator/users', find, async ({ query: { email = '', unapproved } }) => {
    const page = { limit: USERS_MAX, after: undefined }
    const users = await searchUsers(db, { text: email, isUnapproved: unapproved !== undefined }, page)
    return {
      users: users.slice(0, USERS_MAX).map((user) => describeUser(user, signup)),
      more: users.length > USERS_MAX,
    }
  })

  const change = {
    schema: {
      summary: 'Change the tier of an account, disable or enable it, approve it or withdraw the approval',
      description:
        'If the account may make no more calls, the gateway cancels its calls: calls that wait are never sent.',
      tags,
      params: IdParams,
      body: UserChange,
      response: { 200: Type.Object({ user: UserAnswer }) },
    },
  }
  app.patch('/v1/operator/users/:id', change, async (request) => {
    const { id } = request.params
    if (!isUuid(id)) throw noSuchUser()
    const user = await changeAccount(deps, request, { ...request.body, id })
    return { user: describeUser(user, signup) }
  })

  const reset = {
    schema: {
      summary: 'Give an account a new password, and end its sessions',
      tags,
      params: IdParams,
      response: { 200: ResetPassword },
    },
  }
  app.post('/v1/operator/users/:id/password', reset, async (request) => {
    const { id } = request.params
    if (!isUuid(id)) throw noSuchUser()
    const actor = actorOf(request)
    const { user, password } = await withAnnouncement({ redis, log: request.log }, [id], () =>
      resetPassword(db, id, { actor }),
    )
    return { user: describeUser(user, signup), password }
  })

  const link = {
    schema: {
      summary: 'Create a one-time link that sets a new password for an account and ends its sessions',
      tags,
      params: IdParams,
      response: { 200: ResetLink },
    },
  }
  app.post('/v1/operator/users/:id/reset-link', link, async (request, reply) => {
    const { id } = request.params
    if (!isUuid(id)) throw noSuchUser()
    const { baseUrl } = deps.config.http
    const { user, link } = await makeResetLink(db, id, { actor: actorOf(request), baseUrl })
    reply.header('cache-control', 'no-store')
    return { user: describeUser(user, signup), link }
  })
}
