import Type, { type Static } from 'typebox'
import { momentOf } from '../catalog/calendar.ts'
import type { CallFilter, CallPosition } from '../db/call-log-pages.ts'
import { GatewayError } from '../errors.ts'

export const LOG_PAGE_MAX = 100

/** Filters of a list of calls. */
export const CallLogQuery = Type.Object({
  from: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'Start of the period: a day in UTC or a time, such as 2026-11-26 or 2026-11-26T09:30:00Z',
    }),
  ),
  to: Type.Optional(Type.String({ maxLength: 40, description: 'End of the period, which is not part of it' })),
  api: Type.Optional(Type.String({ maxLength: 64, description: 'Slug of the API' })),
  endpoint: Type.Optional(
    Type.String({ maxLength: 128, description: 'Path of the endpoint, as in the catalog, such as /current' }),
  ),
  status: Type.Optional(Type.String({ pattern: '^[1-5](xx|\\d\\d)$', description: '200, 4xx, 5xx or another status' })),
  code: Type.Optional(Type.String({ pattern: '^[A-Z_]{1,60}$', description: 'Code of the error' })),
  key: Type.Optional(
    Type.String({
      pattern: '^(session|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$',
      description: 'Id of an API key or of a connection, or session',
    }),
  ),
  mode: Type.Optional(Type.Enum(['live', 'test'], { description: 'live or test calls' })),
  via: Type.Optional(Type.Enum(['call', 'batch', 'mcp'], { description: 'How calls reached the gateway' })),
  tool: Type.Optional(Type.String({ pattern: '^[\\w.-]{1,128}$', description: 'The MCP tool' })),
  limit: Type.Optional(
    Type.String({ pattern: '^([1-9]\\d?|100)$', description: `Number of calls of a page, at most ${LOG_PAGE_MAX}` }),
  ),
  cursor: Type.Optional(
    Type.String({
      pattern: '^\\d{1,15}_[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
      description: 'End of the previous page: the value in its Link header',
    }),
  ),
})
export type CallLogQuery = Static<typeof CallLogQuery>

/** @throws GatewayError VALIDATION_ERROR if a text is not a time */
export function readCallFilter(query: CallLogQuery): Omit<CallFilter, 'accountId' | 'teamId'> {
  const { api: slug, endpoint, code, key, mode, via, tool } = query
  return {
    from: readMoment('from', query.from),
    to: readMoment('to', query.to),
    ...{ slug, endpoint, code, key, mode, via, tool },
    status: query.status === undefined ? undefined : statusesOf(query.status),
  }
}

export function readCallPage({ limit, cursor }: CallLogQuery): { limit: number; after: CallPosition | undefined } {
  const [at, id = ''] = cursor?.split('_') ?? []
  return {
    limit: limit === undefined ? LOG_PAGE_MAX : Number(limit),
    after: at === undefined ? undefined : { at: Number(at), id },
  }
}

/** Postgres has no year 0. */
const MOMENT = /^[12]\d{3}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/i

function readMoment(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const moment = MOMENT.test(text) ? momentOf(text) : undefined
  if (moment) return moment
  throw new GatewayError('VALIDATION_ERROR', {
    message: `Parameter ${name} must be a day or a moment with its time zone, such as 2026-11-26 or 2026-11-26T09:30:00Z.`,
    tokens: { param: name },
  })
}

/** The first and last status of a filter: `4xx` means 400 to 499. */
function statusesOf(text: string): [first: number, last: number] {
  const hundred = Number(text[0]) * 100
  return text.endsWith('xx') ? [hundred, hundred + 99] : [Number(text), Number(text)]
}
