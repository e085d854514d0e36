import Type from 'typebox'
import { isCalendarDate } from '../catalog/calendar.ts'
import type { Context } from '../context.ts'
import { groupUsage, type UsageGroup } from '../db/usage.ts'
import { GatewayError } from '../errors.ts'
import type { App } from '../http/typed-app.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const GROUPS: UsageGroup[] = ['day', 'api', 'key', 'status', 'mode', 'charged']
const DAY_MS = 86_400_000
const DAYS_MAX = 366
const DAYS_DEFAULT = 30

const Day = Type.String({ pattern: '^2\\d{3}-\\d{2}-\\d{2}$', description: 'UTC day, YYYY-MM-DD' })

const UsageQuery = Type.Object({
  from: Type.Optional(Day),
  to: Type.Optional(Day),
  groupBy: Type.Optional(
    Type.String({
      pattern: `^(${GROUPS.join('|')})(,(${GROUPS.join('|')}))*$`,
      description: 'Any of day, api, key, status, mode, charged, separated by commas; default: day,api,key,status',
    }),
  ),
})

const UsageAnswer = Type.Object(
  {
    from: Day,
    to: Day,
    groupBy: Type.Array(Type.Enum(['day', 'api', 'key', 'status', 'mode', 'charged']), {
      description: 'How the rows are grouped',
    }),
    total: Type.Integer({ description: 'Calls in the whole span, refused ones included' }),
    usage: Type.Array(
      Type.Object({
        day: Type.Optional(Day),
        api: Type.Optional(
          Type.String({ description: 'Slug of the API; "-" where a refused call named none of the catalog' }),
        ),
        key: Type.Optional(
          Type.String({ description: 'Id of the API key or of the connection of an application, or "session"' }),
        ),
        status: Type.Optional(Type.Integer({ description: 'HTTP status of the answer' })),
        mode: Type.Optional(Type.Enum(['live', 'test'], { description: 'live or test calls' })),
        charged: Type.Optional(Type.Boolean({ description: 'Whether the calls count against the monthly quota' })),
        calls: Type.Integer({ description: 'Number of calls' }),
      }),
      { description: 'Rows, one a group' },
    ),
  },
  { title: 'Usage' },
)

/** What an account's calls came to, by day, API, key and status. */
export async function usageRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  const usage = {
    schema: {
      summary: 'Calls per day, API, key and status, refused ones included; a call shows a second or two after it ended',
      tags: ['Billing'],
      querystring: UsageQuery,
      response: { 200: UsageAnswer },
    },
  }
  app.get('/v1/usage', usage, async (request) => {
    const { from, to } = readSpan(request.query, context.health.now())
    const groupBy = [...new Set((request.query.groupBy ?? 'day,api,key,status').split(','))] as UsageGroup[]
    const lines = await groupUsage(context.db, sessionOf(request).user.id, { from, to, groupBy })
    const counted = lines.map((line) => ({ ...line, calls: Number(line.calls) }))
    return { from, to, groupBy, total: counted.reduce((sum, { calls }) => sum + calls, 0), usage: counted }
  })
}

/** The days asked for, both included; by default the last thirty. @throws GatewayError VALIDATION_ERROR */
function readSpan(
  query: { from?: string | undefined; to?: string | undefined },
  now: number,
): { from: string; to: string } {
  const to = readDay('to', query.to) ?? dayOf(now)
  const from = readDay('from', query.from) ?? dayOf(Date.parse(to) - (DAYS_DEFAULT - 1) * DAY_MS)
  const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1
  if (days < 1) throw invalid('from', 'must not be after to')
  if (days > DAYS_MAX) throw invalid('from', `must be at most ${DAYS_MAX} days before to`)
  return { from, to }
}

function readDay(name: string, value: string | undefined): string | undefined {
  if (value !== undefined && !isCalendarDate(value)) throw invalid(name, 'must be a day of the calendar')
  return value
}

function dayOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10)
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('VALIDATION_ERROR', { message: `Parameter ${param} ${reason}.`, tokens: { param } })
}
