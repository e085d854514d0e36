import Type from 'typebox'
import { isUuid } from '../accounts/uuid.ts'
import { nullable } from '../catalog/json.ts'
import { apiNotFound } from '../catalog/unknown-api.ts'
import type { Context } from '../context.ts'
import { accountsOfApi } from '../db/account-usage.ts'
import { findCallsById, listCalls } from '../db/call-log-pages.ts'
import { dayOf } from '../db/call-log-partitions.ts'
import { GatewayError } from '../errors.ts'
import { nextPageOf } from '../http/request/paging.ts'
import { IdParams, SlugParams } from '../http/request/path-ids.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { AccountReport, reportAccount } from '../operator/account-report.ts'
import { actorOf } from '../operator/actor.ts'
import { noSuchUser } from '../operator/change-user.ts'
import { revokeKey } from '../operator/revoke-key.ts'
import { CallLogQuery, readCallFilter, readCallPage } from '../telemetry/call-log-query.ts'
import {
  AccountedCallAnswer,
  cursorOf,
  hintForUnknownId,
  parseLoggedId,
  toAccountedCall,
} from '../telemetry/logged-call.ts'

type OperatorCallDeps = Pick<Context, 'config' | 'catalog' | 'db' | 'reportsDb' | 'redis' | 'clock'>

/** Most accounts of an API that are listed. */
const ACCOUNTS_MAX = 20

const tags = ['Operator']

const CallsQuery = Type.Object({
  ...CallLogQuery.properties,
  account: Type.Optional(Type.String({ maxLength: 40, description: 'Id of an account' })),
})

const ApiAccounts = Type.Object({
  day: Type.String({ description: 'UTC day' }),
  accounts: Type.Array(
    Type.Object({
      id: Type.String(),
      email: nullable(Type.String()),
      calls: Type.Integer({ description: 'All calls' }),
      refused: Type.Integer({ description: 'Calls that were answered with 4xx or cancelled' }),
      failed: Type.Integer({ description: 'Calls that were answered with 5xx' }),
    }),
  ),
})

/** Calls and accounts in the operator API. Register it inside a guard. */
export async function operatorCallRoutes(app: App, deps: OperatorCallDeps): Promise<void> {
  refuseIllFormedQueries(app)
  callRoutes(app, deps)
  accountRoutes(app, deps)
}

function callRoutes(app: App, { config, reportsDb: db }: OperatorCallDeps): void {
  const list = {
    schema: {
      summary: 'Calls of all accounts, newest first; a page may be short while there are more (see Link)',
      tags,
      querystring: CallsQuery,
      response: { 200: Type.Object({ calls: Type.Array(AccountedCallAnswer) }) },
    },
  }
  app.get('/v1/operator/calls', list, async (request, reply) => {
    const { account, ...query } = request.query
    if (account !== undefined && !isUuid(account)) throw noSuchUser()
    const { calls, next } = await listCalls(db, { ...readCallFilter(query), accountId: account }, readCallPage(query))
    if (next) reply.header('link', `<${nextPageOf(request.url, cursorOf(next))}>; rel="next"`)
    return { calls: calls.map(toAccountedCall) }
  })

  const find = {
    schema: {
      summary: 'A call by its X-Call-Id, or the calls of a request by its X-Request-Id',
      tags,
      params: IdParams,
      response: { 200: Type.Object({ calls: Type.Array(AccountedCallAnswer) }) },
    },
  }
  app.get('/v1/operator/calls/:id', find, async (request) => {
    const named = parseLoggedId(request.params.id)
    const rows = named ? await findCallsById(db, named, 'operator') : []
    if (rows.length === 0) throw noSuchCall(config.callLog.days)
    return { calls: rows.map(toAccountedCall) }
  })
}

function accountRoutes(app: App, { config, catalog, db, reportsDb, redis, clock }: OperatorCallDeps): void {
  const report = {
    schema: {
      summary: 'An account: its plan, APIs, last calls and failures, keys and connections',
      tags,
      params: IdParams,
      response: { 200: AccountReport },
    },
  }
  app.get('/v1/operator/users/:id', report, async (request) => {
    const { id } = request.params
    if (!isUuid(id)) throw noSuchUser()
    return await reportAccount(reportsDb, id, { signup: config.accounts.signup, now: clock.now() })
  })

  const revoke = {
    schema: {
      summary: 'Revoke an API key of any account: every node refuses it from now on',
      tags,
      params: IdParams,
      response: { 204: NoContent },
    },
  }
  app.delete('/v1/operator/keys/:id', revoke, async (request, reply) => {
    const actor = actorOf(request)
    await withAnnouncement({ redis, log: request.log }, [], async (accountIds) =>
      accountIds.add(await revokeKey(db, request.params.id, actor)),
    )
    return reply.status(204).send()
  })

  const accounts = {
    schema: {
      summary: 'The accounts with the most calls of an API today (UTC), which shows who uses its cap',
      tags,
      params: SlugParams,
      response: { 200: ApiAccounts },
    },
  }
  app.get('/v1/operator/upstreams/:slug/accounts', accounts, async (request) => {
    const { slug } = request.params
    if (!catalog.has(slug)) throw apiNotFound(catalog.values(), slug)
    const day = dayOf(clock.now())
    return { day, accounts: await accountsOfApi(reportsDb, { slug, day }, ACCOUNTS_MAX) }
  })
}

function noSuchCall(days: number): GatewayError {
  return new GatewayError('CALL_NOT_FOUND', {
    message:
      days === 0 ? 'This gateway keeps no log of calls.' : 'The log has no call with this X-Call-Id or X-Request-Id.',
    hint: days === 0 ? 'Set CALL_LOG_DAYS' : hintForUnknownId(days),
  })
}
