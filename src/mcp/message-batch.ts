import { ProtocolErrorCode } from '@modelcontextprotocol/server'

/** The first revision that takes one message a request. Clients of those before it send no header with their revision. */
const SINGLE_FROM = '2025-06-18'

/** Messages in one request: their calls are made at once, and each counts as one that comes alone. */
const MESSAGES_MAX = 20

/** Why an array of messages is refused; undefined for one that is not, and for a single message. */
export function refuseBatch(body: unknown, revision: string | undefined): Response | undefined {
  if (!Array.isArray(body)) return undefined
  if (revision !== undefined && revision >= SINGLE_FROM) return invalid('This revision takes one message a request.')
  if (body.length === 0) return invalid('There is no message.')
  if (body.length > MESSAGES_MAX) return invalid(`A request takes at most ${MESSAGES_MAX} messages.`)
  // Answers are told apart by the id of their request.
  const ids = body.flatMap((message) => Object(message).id ?? [])
  return new Set(ids).size < ids.length ? invalid('Two requests have the same id.') : undefined
}

function invalid(message: string): Response {
  const error = { code: ProtocolErrorCode.InvalidRequest, message: `Invalid Request: ${message}` }
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 400 })
}

/** The protocol's own server answers an array with one request in it by a single answer: JSON-RPC wants an array. */
export async function asBatch(response: Response): Promise<Response> {
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
  if (!response.ok || !isJson) return response
  return Response.json([await response.json()].flat(), { status: response.status })
}
