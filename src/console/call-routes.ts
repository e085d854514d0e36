import Type from 'typebox'
import { inOwnForm, isUuid } from '../accounts/uuid.ts'
import type { Context } from '../context.ts'
import { findCallsById, listCalls } from '../db/call-log-pages.ts'
import { findUserByEmail } from '../db/users.ts'
import { nextPageOf } from '../http/request/paging.ts'
import { IdParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import type { Assets } from '../pages/assets.ts'
import { sendPage } from '../pages/page-headers.ts'
import { CallLogQuery, readCallFilter, readCallPage } from '../telemetry/call-log-query.ts'
import { cursorOf, parseLoggedId, toAccountedCall } from '../telemetry/logged-call.ts'
import { callPage, callsPage, notFoundPage } from './call-pages.ts'

type CallPagesDeps = Pick<Context, 'db' | 'reportsDb'> & { assets: Assets }

/** Pages of calls, and the target of the search box on every page. */
export async function callRoutes(scope: App, deps: CallPagesDeps): Promise<void> {
  const { reportsDb, assets } = deps
  refuseIllFormedQueries(scope)
  const search = { schema: { querystring: Type.Object({ q: Type.String({ maxLength: 320, default: '' }) }) } }
  scope.get('/find', search, async (request, reply) => {
    const text = request.query.q.trim()
    const path = await findPage(deps, text)
    return path === undefined ? sendPage(reply.status(404), notFoundPage(text, assets)) : reply.redirect(path, 303)
  })

  const filters = Type.Object({ ...CallLogQuery.properties, account: Type.Optional(Type.String({ maxLength: 320 })) })
  scope.get('/calls', { schema: { querystring: filters }, preValidation: dropEmpty }, async (request, reply) => {
    const { account, ...query } = request.query
    const accountId = account === undefined ? undefined : await findAccountId(deps, account)
    if (account !== undefined && accountId === undefined)
      return sendPage(reply.status(404), notFoundPage(account, assets))
    const filter = { ...readCallFilter(query), accountId }
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
}

/** A form also sends its empty fields. */
export async function dropEmpty(request: { query: unknown }): Promise<void> {
  const given = Object.entries(Object(request.query)).filter(([, value]) => value !== '')
  request.query = Object.fromEntries(given)
}

/** The address of the page that a search text means; undefined if it means nothing. */
async function findPage(deps: CallPagesDeps, text: string): Promise<string | undefined> {
  const [call, ...others] = await findRows(deps, text)
  if (call) return others.length > 0 ? `/calls/${text.toLowerCase()}` : `/calls/${toAccountedCall(call).id}`
  const id = await findAccountId(deps, text)
  return id && `/accounts/${id}`
}

/** The id of the account with this id or email; undefined if no account has this email. */
export async function findAccountId({ db }: Pick<Context, 'db'>, text: string): Promise<string | undefined> {
  const named = inOwnForm(text.trim())
  if (named.includes('@')) return (await findUserByEmail(db, named))?.id
  return isUuid(named) ? named : undefined
}

async function findRows({ reportsDb }: CallPagesDeps, id: string) {
  const named = parseLoggedId(id)
  return named ? await findCallsById(reportsDb, named, 'operator') : []
}
