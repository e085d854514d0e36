import Type, { type Static } from 'typebox'
import { OneAtATime, TooManyWaitingError } from '../async/one-at-a-time.ts'
import { isCalendarDate } from '../catalog/calendar.ts'
import type { Context } from '../context.ts'
import { groupUsage, type UsageGroup, type UsageLine, type UsageRange } from '../db/usage.ts'
import { GatewayError } from '../errors.ts'
import type { App } from '../http/request/typed-app.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const GROUPS: UsageGroup[] = ['day', 'api', 'key', 'status', 'mode', 'charged']
const DAY_MS = 86_400_000
const DAYS_MAX = 366
const DAYS_DEFAULT = 30
const ROWS_MAX = 1_000

/**
 * Reports of one account that may wait in a node while another report of the account runs. Further
 * reports are refused; fails closed. A page needs one or two reports, and a report may read the
 * rows of a year.
 */
const WAITING_REPORTS_MAX = 4

const Day = Type.String({ pattern: '^2\\d{3}-\\d{2}-\\d{2}$', description: 'UTC day, YYYY-MM-DD' })

const UsageQuery = Type.Object({
  from: Type.Optional(Day),
  to: Type.Optional(Day),
  groupBy: Type.Optional(
    Type.String({
      pattern: `^(${GROUPS.join('|')})(,(${GROUPS.join('|')}))*$`,
      description:
        'One or more of day, api, key, status, mode, charged, separated by commas; default: day,api,key,status',
    }),
  ),
  limit: Type.Optional(
    Type.String({ pattern: '^([1-9]\\d{0,2}|1000)$', description: `Number of rows of a page, at most ${ROWS_MAX}` }),
  ),
  cursor: Type.Optional(
    Type.String({
      pattern: '^[\\w-]+(~[\\w-]+)*$',
      maxLength: 255,
      description: 'End of the previous page: the value in its Link header',
    }),
  ),
})

const UsageAnswer = Type.Object(
  {
    from: Day,
    to: Day,
    groupBy: Type.Array(Type.Enum(['day', 'api', 'key', 'status', 'mode', 'charged']), {
      description: 'The members by which the rows are grouped',
    }),
    total: Type.Integer({ description: 'Number of calls in the whole period, on all pages, refused calls included' }),
    usage: Type.Array(
      Type.Object({
        day: Type.Optional(Day),
        api: Type.Optional(
          Type.String({
            description: 'Slug of the API; "-" if a refused call named no API of the catalog, or for the rest of a day',
          }),
        ),
        key: Type.Optional(
          Type.String({
            description:
              'Id of the API key or of the connection of an application, or "session"; "other" for the rest of a day that has more rows of free calls than are kept',
          }),
        ),
        status: Type.Optional(
          Type.Integer({ description: 'HTTP status of the answer; 499 if the caller left or the call was cancelled' }),
        ),
        mode: Type.Optional(Type.Enum(['live', 'test'], { description: 'live or test calls' })),
        charged: Type.Optional(Type.Boolean({ description: 'Whether the calls count against the monthly quota' })),
        calls: Type.Integer({ description: 'Number of calls' }),
      }),
      { description: 'One row for each group, in the order of groupBy' },
    ),
  },
  { title: 'Usage' },
)

/**
 * The number of an account's calls by day, API, key and status. There may be many keys over time,
 * so the rows come in pages.
 */
export async function usageRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  const reports = new OneAtATime(WAITING_REPORTS_MAX)
  const usage = {
    schema: {
      summary:
        'Calls per day, API, key and status, refused calls included; a call appears a second or two after it ended',
      tags: ['Billing'],
      querystring: UsageQuery,
      response: { 200: UsageAnswer },
    },
  }
  app.get('/v1/usage', usage, async (request, reply) => {
    const range = readRange(request.query, context.clock.now())
    const { from, to, groupBy, limit } = range
    const { id } = sessionOf(request).user
    const { total, lines } = await reports
      .run(id, () => groupUsage(context.reportsDb, id, range))
      .catch((error: unknown) => {
        throw error instanceof TooManyWaitingError ? tooManyReports(error) : error
      })
    const page = lines.slice(0, limit)
    const last = page.at(-1)
    if (lines.length > limit && last) {
      const next = { from, to, groupBy: groupBy.join(), limit: String(limit), cursor: positionOf(last, groupBy) }
      reply.header('link', `</v1/usage?${new URLSearchParams(next)}>; rel="next"`)
    }
    return { from, to, groupBy, total, usage: page }
  })
}

/** @throws GatewayError VALIDATION_ERROR */
function readRange({ groupBy: groups, limit, cursor, ...days }: Static<typeof UsageQuery>, now: number): UsageRange {
  const groupBy = [...new Set((groups ?? 'day,api,key,status').split(','))] as UsageGroup[]
  const after = cursor?.split('~')
  if (after && after.length !== groupBy.length) throw invalid('cursor', 'must come from a page with the same groupBy')
  return { ...readSpan(days, now), groupBy, limit: limit === undefined ? ROWS_MAX : Number(limit), after }
}

function tooManyReports(cause: Error): GatewayError {
  return new GatewayError('RATE_LIMIT_EXCEEDED', {
    message: 'Too many usage reports of this account are running.',
    hint: 'Wait until one of the reports has arrived, then send the request again',
    retryAfterMs: 1_000,
    cause,
  })
}

/** The cursor after this row. */
const positionOf = (line: UsageLine, groupBy: UsageGroup[]): string =>
  groupBy.map((group) => String(line[group])).join('~')

/**
 * The requested days, both inclusive. Default: the last thirty days.
 *
 * @throws GatewayError VALIDATION_ERROR
 */
function readSpan(
  query: { from?: string | undefined; to?: string | undefined },
  now: number,
): { from: string; to: string } {
  const to = readDay('to', query.to) ?? dayOf(now)
  const from = readDay('from', query.from) ?? dayOf(Date.parse(to) - (DAYS_DEFAULT - 1) * DAY_MS)
  const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1
  if (days < 1) throw invalid('from', 'must not be after to')
  if (days > DAYS_MAX) throw invalid('from', `must be at most ${DAYS_MAX - 1} days before to`)
  return { from, to }
}

function readDay(name: string, value: string | undefined): string | undefined {
  if (value !== undefined && !isCalendarDate(value)) throw invalid(name, 'must be a day that exists in the calendar')
  return value
}

function dayOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10)
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('VALIDATION_ERROR', { message: `Parameter ${param} ${reason}.`, tokens: { param } })
}
