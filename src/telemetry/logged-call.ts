import Type, { type Static } from 'typebox'
import { nullable } from '../catalog/json.ts'
import type { CallPosition, ListedCallRow } from '../db/call-log-pages.ts'

const Ms = (description: string) => nullable(Type.Number({ description: `${description}, milliseconds` }))

/** A call of the log of calls, as users and operators see it. */
export const LoggedCallAnswer = Type.Object(
  {
    id: Type.String({ description: 'Value of the header X-Call-Id of the answer' }),
    requestId: nullable(
      Type.String({
        description:
          'Value of the header X-Request-Id of the answer; all calls of a batch or of an MCP message have the same id',
      }),
    ),
    at: Type.String({ format: 'date-time', description: 'When the call ended' }),
    api: Type.String({ description: 'Slug of the API; "-" if the call named no API of the catalog' }),
    endpoint: nullable(
      Type.String({
        description: 'Path of the endpoint, as in the catalog; null: the call named no endpoint of the catalog',
      }),
    ),
    status: Type.Integer({
      description: 'HTTP status of the answer; 499 if the caller left or the call was cancelled',
    }),
    code: nullable(Type.String({ description: 'Code of the error; null for a success' })),
    cause: nullable(Type.String({ description: 'Why the upstream failed, in a few words' })),
    key: nullable(
      Type.Object(
        {
          id: Type.String({ description: 'Id of the API key, or of the connection of an application' }),
          label: nullable(Type.String({ description: 'Label of an API key that still exists' })),
          lastFour: nullable(Type.String({ description: 'Last characters of an API key that still exists' })),
          application: nullable(Type.String({ description: 'Name of the connected application' })),
        },
        { description: 'The key or application that made the call; null: a session made it' },
      ),
    ),
    mode: Type.Enum(['live', 'test'], { description: 'live or test call' }),
    via: Type.Enum(['call', 'batch', 'mcp'], { description: 'How the call reached the gateway' }),
    tool: nullable(Type.String({ description: 'The MCP tool that made the call' })),
    attempts: nullable(
      Type.Integer({
        description:
          'Number of attempts at the upstream, including attempts without a connection; null: the call was refused, or its caller left',
      }),
    ),
    quotedMs: Ms('Forecast wait; for a refused call, its Retry-After'),
    admissionMs: Ms('Time until the call was accepted'),
    queueMs: Ms('Time from acceptance until a worker had the call'),
    permitMs: Ms("Wait for a permit of the upstream's cap, and until an operator resumes a paused API"),
    upstreamMs: Ms('Time spent in attempts at the upstream'),
    totalMs: Type.Number({ description: 'Time from the request to the answer, milliseconds' }),
    cache: nullable(
      Type.Enum(['hit', 'stale', 'miss'], {
        description:
          'Whether a stored answer was used; null: answers of the endpoint are not stored, or the call was refused, cancelled or made with a test key',
      }),
    ),
    bytes: nullable(Type.Integer({ description: 'Length of the answer' })),
  },
  { title: 'LoggedCall' },
)
export type LoggedCallAnswer = Static<typeof LoggedCallAnswer>

export function toLoggedCall(row: ListedCallRow): LoggedCallAnswer {
  const { key_id: keyId, key_label: label, key_last_four: lastFour, application } = row
  return {
    id: prefixed('call', row.id),
    requestId: row.request_id === null ? null : prefixed('req', row.request_id),
    at: row.at.toISOString(),
    api: row.slug,
    endpoint: row.endpoint,
    status: row.status,
    code: row.code,
    cause: row.cause,
    key: keyId === null ? null : { id: keyId, label, lastFour, application },
    mode: row.mode,
    via: row.via,
    tool: row.tool,
    attempts: row.attempts,
    quotedMs: row.quoted_ms,
    admissionMs: row.admission_ms,
    queueMs: row.queue_ms,
    permitMs: row.permit_ms,
    upstreamMs: row.upstream_ms,
    totalMs: row.total_ms,
    cache: row.cache,
    bytes: row.bytes,
  }
}

/** Adds the kind to an id and removes the hyphens of its UUID. */
function prefixed(kind: 'call' | 'req', uuid: string): string {
  return `${kind}_${uuid.replaceAll('-', '')}`
}

/** The kind of an id and its UUID; undefined if the text is not an id of a call or a request. */
export function parseLoggedId(id: string): { kind: 'call' | 'req'; uuid: string } | undefined {
  const match = /^(call|req)_([0-9a-f]{32})$/.exec(id.trim().toLowerCase())
  return match ? { kind: match[1] === 'call' ? 'call' : 'req', uuid: match[2] ?? '' } : undefined
}

export function cursorOf({ at, id }: CallPosition): string {
  return `${at}_${id}`
}

/** A call with its account, as operators see it. */
export const AccountedCallAnswer = Type.Object({
  ...LoggedCallAnswer.properties,
  account: Type.Object({
    id: Type.String(),
    email: nullable(Type.String({ description: 'null: the account no longer exists' })),
  }),
})

export function toAccountedCall(row: ListedCallRow): Static<typeof AccountedCallAnswer> {
  return { ...toLoggedCall(row), account: { id: row.account_id, email: row.email } }
}

/** What to do if a log that keeps calls for so many days, above 0, has no call with an id. */
export function hintForUnknownId(days: number): string {
  const kept = days === 1 ? 'day' : `${days} days`
  return `Use the X-Call-Id or X-Request-Id of a call of the last ${kept}; a call appears about a second after its end`
}
