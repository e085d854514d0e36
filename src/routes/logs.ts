import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { MANAGERS, teamFor } from '../accounts/team-access.ts'
import type { Context } from '../context.ts'
import { type CallFilter, type CallPosition, findCallsById, listCalls } from '../db/call-log-pages.ts'
import type { Db } from '../db/database.ts'
import { GatewayError } from '../errors.ts'
import { prefersType } from '../http/request/accept.ts'
import { nextPageOf } from '../http/request/paging.ts'
import { IdParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import { CallLogQuery, readCallFilter, readCallPage } from '../telemetry/call-log-query.ts'
import { cursorOf, hintForUnknownId, LoggedCallAnswer, parseLoggedId, toLoggedCall } from '../telemetry/logged-call.ts'
import { checkSession, guardWithSession, sessionOf } from './session-guard.ts'

/** Most calls of an export. */
const EXPORT_CALLS_MAX = 100_000

/** Calls that an export reads at once. They stay in memory while the client does not read. */
const EXPORT_PAGE = 500

const LogsQuery = Type.Object({
  ...CallLogQuery.properties,
  teamId: Type.Optional(
    Type.String({ description: 'Id of a team that you own or administer: the calls with its keys' }),
  ),
})

const LIST = {
  config: { errors: ['TEAM_NOT_FOUND', 'FORBIDDEN', 'NOT_FOUND', 'RATE_LIMIT_EXCEEDED'] as const },
  schema: {
    summary: 'Calls of the last days, newest first',
    description:
      'One entry for each call that has ended, about a second after its end: ids, status, code and where the time went, never parameters or bodies. If a filter matches few calls, a page may be short or empty; as long as the Link header names a next page, there are more calls. With `Accept: application/x-ndjson` the answer is an export of up to 100,000 calls, one on each line, and the last line states where the next export continues. An API node runs one export of an account at a time, and refuses a second export with 429.',
    tags: ['Calls'],
    operationId: 'listLoggedCalls',
    querystring: LogsQuery,
    response: {
      200: {
        content: {
          'application/json': {
            schema: Type.Object({ calls: Type.Array(LoggedCallAnswer, { description: 'Newest first' }) }),
          },
          'application/x-ndjson': { schema: Type.String() },
        },
      },
    },
  },
}

const FIND = {
  config: { errors: ['CALL_NOT_FOUND', 'NOT_FOUND'] as const },
  schema: {
    summary: 'A call by its id, or the calls of a request by its id',
    description: 'The id is the value of the header X-Call-Id or X-Request-Id of the answer.',
    tags: ['Calls'],
    operationId: 'findLoggedCalls',
    params: IdParams,
    response: {
      200: Type.Object({
        call: Type.Optional(LoggedCallAnswer),
        calls: Type.Optional(
          Type.Array(LoggedCallAnswer, { description: 'The calls of the request, in the order in which they ended' }),
        ),
      }),
    },
  },
}

/** The log of an account's calls. */
export async function logRoutes(app: App, context: Context): Promise<void> {
  const { config, reportsDb: db } = context
  guardWithSession(app, context)
  refuseIllFormedQueries(app)
  /** Accounts with a running export. */
  const exporting = new Set<string>()
  app.addHook('preHandler', async () => {
    if (config.callLog.days === 0) throw noLog()
  })

  app.get('/v1/logs', LIST, async (request, reply) => {
    const { query } = request
    const session = sessionOf(request)
    const { id } = session.user
    const findTeam = async () =>
      query.teamId === undefined ? undefined : await teamFor(db, { teamId: query.teamId, userId: id }, MANAGERS)
    const team = await findTeam()
    const filter = { ...readCallFilter(query), accountId: team?.owner_id ?? id, teamId: team?.id }
    const { limit, after } = readCallPage(query)
    if (prefersType(request.headers.accept, 'application/x-ndjson')) {
      if (exporting.has(id)) throw oneExport()
      exporting.add(id)
      // Exports take as long as their readers, and their rights may end meanwhile.
      const checkRights = async (): Promise<void> => {
        await checkSession(context, session)
        await findTeam()
      }
      const stream = Readable.from(exportLines(db, { filter, from: after, checkRights }), { objectMode: false })
      // The stream closes when the client has read everything, and when the client leaves.
      stream.once('close', () => exporting.delete(id))
      return (reply as FastifyReply).type('application/x-ndjson').send(stream)
    }
    const { calls, next } = await listCalls(db, filter, { limit, after })
    if (next) reply.header('link', `<${nextPageOf(request.url, cursorOf(next))}>; rel="next"`)
    return { calls: calls.map(toLoggedCall) }
  })

  app.get('/v1/logs/:id', FIND, async (request) => {
    const viewer = { accountId: sessionOf(request).user.id }
    const named = parseLoggedId(request.params.id)
    const [call, ...others] = named ? (await findCallsById(db, named, viewer)).map(toLoggedCall) : []
    if (!call) throw notLogged(config.callLog.days)
    return named?.kind === 'call' ? { call } : { calls: [call, ...others] }
  })
}

/** @throws GatewayError as `checkRights`, which is called before each page */
async function* exportLines(
  db: Db,
  {
    filter,
    from,
    checkRights,
  }: { filter: CallFilter; from: CallPosition | undefined; checkRights: () => Promise<void> },
): AsyncGenerator<string> {
  let after = from
  for (let count = 0; count < EXPORT_CALLS_MAX; ) {
    await checkRights()
    const { calls, next } = await listCalls(db, filter, { limit: EXPORT_PAGE, after })
    count += calls.length
    yield calls.map((row) => `${JSON.stringify(toLoggedCall(row))}\n`).join('')
    after = next
    if (!next) break
  }
  yield `${JSON.stringify({ done: true, ...(after && { next: cursorOf(after) }) })}\n`
}

function noLog(): GatewayError {
  return new GatewayError('NOT_FOUND', {
    message: 'This gateway keeps no log of calls.',
    hint: 'Ask the operator to set CALL_LOG_DAYS',
  })
}

function notLogged(days: number): GatewayError {
  return new GatewayError('CALL_NOT_FOUND', {
    message: 'The log has no call of your account with this id.',
    hint: hintForUnknownId(days),
  })
}

function oneExport(): GatewayError {
  return new GatewayError('RATE_LIMIT_EXCEEDED', {
    message: 'An export of this account is already running.',
    hint: 'Read the running export to its end, then send the request again',
    retryAfterMs: 5_000,
  })
}
