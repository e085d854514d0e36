import Type from 'typebox'
import { isUuid } from '../accounts/uuid.ts'
import type { CancelAccountDeps } from '../calls/cancel-account-calls.ts'
import type { Context } from '../context.ts'
import { accountsOfApi } from '../db/account-usage.ts'
import { dayOf } from '../db/call-log-partitions.ts'
import { searchUsers } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { takeForms } from '../http/request/form-body.ts'
import { nextPageOf, PageQuery, readPage } from '../http/request/paging.ts'
import { IdParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { reportAccount } from '../operator/account-report.ts'
import { actorOf } from '../operator/actor.ts'
import { describeUser, noSuchUser, UserChange } from '../operator/change-user.ts'
import { revokeKey } from '../operator/revoke-key.ts'
import type { Assets } from '../pages/assets.ts'
import { sendPage } from '../pages/page-headers.ts'
import { accountPage, accountsPage, apiAccountsPage } from './account-pages.ts'
import { notFoundPage } from './call-pages.ts'
import { dropEmpty, findAccountId } from './call-routes.ts'
import { changeAccount } from './change-account.ts'

type AccountPagesDeps = CancelAccountDeps &
  Pick<Context, 'config' | 'catalog' | 'reportsDb' | 'clock'> & { assets: Assets }

/** Most accounts of an API that are listed. */
const API_ACCOUNTS_MAX = 50

/** Accounts of a page of the list. */
const PAGE_MAX = 50

const Flag = Type.Enum(['true', 'false'])

/** All values of a form are texts. */
const ChangeForm = Type.Object(
  { tier: UserChange.properties.tier, disabled: Type.Optional(Flag), approved: Type.Optional(Flag) },
  { minProperties: 1, additionalProperties: false },
)

const AccountsQuery = Type.Object({
  api: Type.Optional(Type.String({ maxLength: 64 })),
  q: Type.Optional(Type.String({ maxLength: 254 })),
  unapproved: Type.Optional(Type.Enum(['true'])),
  cursor: PageQuery.properties.cursor,
})

/** Pages of accounts, and the forms that change an account as the command line does. */
export async function accountRoutes(scope: App, deps: AccountPagesDeps): Promise<void> {
  const { config, catalog, db, reportsDb, redis, clock, assets } = deps
  const { signup } = config.accounts
  refuseIllFormedQueries(scope)
  takeForms(scope)

  const find = { schema: { querystring: AccountsQuery }, preValidation: dropEmpty }
  scope.get('/accounts', find, async (request, reply) => {
    const { api: slug, q: text = '', unapproved, cursor } = request.query
    if (slug !== undefined) {
      if (!catalog.has(slug)) throw new GatewayError('NOT_FOUND', { message: 'The catalog has no such API.' })
      const accounts = await accountsOfApi(reportsDb, { slug, day: dayOf(clock.now()) }, API_ACCOUNTS_MAX)
      return sendPage(reply, apiAccountsPage(slug, accounts, assets))
    }
    const isUnapproved = unapproved !== undefined
    const { after } = readPage({ ...(cursor !== undefined && { cursor }) })
    const found = await searchUsers(db, { text: text.trim(), isUnapproved }, { limit: PAGE_MAX, after })
    const rows = found.slice(0, PAGE_MAX)
    const last = found.length > PAGE_MAX ? rows.at(-1) : undefined
    const next = last && nextPageOf(request.url, `${last.createdMicros}_${last.id}`)
    const users = rows.map((user) => describeUser(user, signup))
    return sendPage(reply, accountsPage({ users, text, isUnapproved, next }, assets))
  })

  scope.get('/accounts/:id', { schema: { params: IdParams } }, async (request, reply) => {
    const { id } = request.params
    const found = await findAccountId(deps, id)
    if (found === undefined) return sendPage(reply.status(404), notFoundPage(id, assets))
    if (found !== id) return reply.redirect(`/accounts/${found}`, 303)
    const report = await reportAccount(reportsDb, id, { signup, now: clock.now() })
    return sendPage(reply, accountPage(report, assets))
  })

  const change = { schema: { params: IdParams, body: ChangeForm } }
  scope.post('/accounts/:id', change, async (request, reply) => {
    const { id } = request.params
    if (!isUuid(id)) throw noSuchUser()
    const { tier, disabled, approved } = request.body
    await changeAccount(deps, request, {
      id,
      ...(tier !== undefined && { tier }),
      ...(disabled !== undefined && { disabled: disabled === 'true' }),
      ...(approved !== undefined && { approved: approved === 'true' }),
    })
    return reply.redirect(`/accounts/${id}`, 303)
  })

  const params = Type.Object({ id: Type.String(), key: Type.String() })
  scope.post('/accounts/:id/keys/:key/revoke', { schema: { params } }, async (request, reply) => {
    const { id, key } = request.params
    const actor = actorOf(request)
    await withAnnouncement({ redis, log: request.log }, [], async (accountIds) =>
      accountIds.add(await revokeKey(db, key, actor)),
    )
    return reply.redirect(`/accounts/${encodeURIComponent(id)}`, 303)
  })
}
