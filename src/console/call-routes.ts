import Type from 'typebox'
import { isUuid } from '../accounts/uuid.ts'
import type { CancelAccountDeps } from '../calls/cancel-account-calls.ts'
import type { Context } from '../context.ts'
import { accountsOfApi } from '../db/account-usage.ts'
import { findCallsById, listCalls } from '../db/call-log-pages.ts'
import { dayOf } from '../db/call-log-partitions.ts'
import { findUserByEmail } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { nextPageOf } from '../http/request/paging.ts'
import { IdParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import { announced } from '../limits/account-version.ts'
import { reportAccount } from '../operator/account-report.ts'
import { actorOf } from '../operator/actor.ts'
import { noSuchUser } from '../operator/change-user.ts'
import { revokeKey } from '../operator/revoke-key.ts'
import type { Assets } from '../pages/assets.ts'
import { sendPage } from '../pages/page-headers.ts'
import { CallLogQuery, readCallFilter, readCallPage } from '../telemetry/call-log-query.ts'
import { cursorOf, parseLoggedId, toAccountedCall } from '../telemetry/logged-call.ts'
import { accountPage, apiAccountsPage, callPage, callsPage, notFoundPage } from './call-pages.ts'
import { changeAccount } from './change-account.ts'

type CallPagesDeps = CancelAccountDeps &
  Pick<Context, 'config' | 'catalog' | 'reportsDb' | 'health'> & { assets: Assets }

/** Accounts of an API that are listed. */
const ACCOUNTS_MAX = 50

/** Pages of calls and accounts, and what the search box of every page leads to. */
export async function callRoutes(scope: App, deps: CallPagesDeps): Promise<void> {
  const { config, catalog, db, reportsDb, redis, health, assets } = deps
  refuseIllFormedQueries(scope)
  // A form without fields: what it does stands in its address.
  scope.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, async () => undefined)

  const search = { schema: { querystring: Type.Object({ q: Type.String({ maxLength: 320, default: '' }) }) } }
  scope.get('/find', search, async (request, reply) => {
    const text = request.query.q.trim()
    const path = await findPage(deps, text)
    return path === undefined ? sendPage(reply.status(404), notFoundPage(text, assets)) : reply.redirect(path, 303)
  })

  const filters = Type.Object({ ...CallLogQuery.properties, account: Type.Optional(Type.String({ maxLength: 40 })) })
  scope.get('/calls', { schema: { querystring: filters }, preValidation: dropEmpty }, async (request, reply) => {
    const { account, ...query } = request.query
    if (account !== undefined && !isUuid(account)) return sendPage(reply.status(404), notFoundPage(account, assets))
    const filter = { ...readCallFilter(query), accountId: account }
    const { calls, next } = await listCalls(reportsDb, filter, readCallPage(query))
    const shown = { ...query, ...(account === undefined ? {} : { account }) }
    const older = next && nextPageOf(request.url, cursorOf(next))
    return sendPage(reply, callsPage({ calls: calls.map(toAccountedCall), filter: shown, next: older }, assets))
  })

  scope.get('/calls/:id', { schema: { params: IdParams } }, async (request, reply) => {
    const rows = await findRows(deps, request.params.id)
    if (rows.length === 0) return sendPage(reply.status(404), notFoundPage(request.params.id, assets))
    return sendPage(reply, callPage(rows.map(toAccountedCall), assets))
  })

  scope.get('/accounts/:id', { schema: { params: IdParams } }, async (request, reply) => {
    const { id } = request.params
    if (!isUuid(id)) return sendPage(reply.status(404), notFoundPage(id, assets))
    const report = await reportAccount(reportsDb, id, { signup: config.accounts.signup, now: health.now() })
    return sendPage(reply, accountPage(report, assets))
  })

  const ofApi = { schema: { querystring: Type.Object({ api: Type.String({ maxLength: 64 }) }) } }
  scope.get('/accounts', ofApi, async (request, reply) => {
    const { api: slug } = request.query
    if (!catalog.has(slug)) throw new GatewayError('NOT_FOUND', { message: 'The catalog has no such API.' })
    const accounts = await accountsOfApi(reportsDb, { slug, day: dayOf(health.now()) }, ACCOUNTS_MAX)
    return sendPage(reply, apiAccountsPage(slug, accounts, assets))
  })

  const params = Type.Object({ id: Type.String(), key: Type.String() })
  scope.post('/accounts/:id/keys/:key/revoke', { schema: { params } }, async (request, reply) => {
    const { id, key } = request.params
    const actor = actorOf(request)
    await announced({ redis, log: request.log }, [], async (accountIds) =>
      accountIds.add(await revokeKey(db, key, actor)),
    )
    return reply.redirect(`/accounts/${encodeURIComponent(id)}`, 303)
  })

  const act = { schema: { params: Type.Object({ id: Type.String(), act: Type.Enum(['disable', 'enable']) }) } }
  scope.post('/accounts/:id/:act', act, async (request, reply) => {
    const { id, act } = request.params
    if (!isUuid(id)) throw noSuchUser()
    await changeAccount(deps, request, { id, disabled: act === 'disable' })
    return reply.redirect(`/accounts/${id}`, 303)
  })
}

/** A form sends its empty fields too. */
async function dropEmpty(request: { query: unknown }): Promise<void> {
  const given = Object.entries(Object(request.query)).filter(([, value]) => value !== '')
  request.query = Object.fromEntries(given)
}

/** Address of the page that a text of the search box names; undefined if it names nothing. */
async function findPage(deps: CallPagesDeps, text: string): Promise<string | undefined> {
  const [call, ...others] = await findRows(deps, text)
  if (call) return others.length > 0 ? `/calls/${text.toLowerCase()}` : `/calls/${toAccountedCall(call).id}`
  if (isUuid(text.toLowerCase())) return `/accounts/${text.toLowerCase()}`
  const user = text.includes('@') ? await findUserByEmail(deps.db, text) : undefined
  return user && `/accounts/${user.id}`
}

async function findRows({ reportsDb }: CallPagesDeps, id: string) {
  const named = parseLoggedId(id)
  return named ? await findCallsById(reportsDb, named, 'operator') : []
}
