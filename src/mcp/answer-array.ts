import type { IncomingHttpHeaders } from 'node:http'
import { isObject } from '../catalog/json.ts'

/**
 * Most messages of an array. They are answered at the same time, so an array may have as many as a
 * connection may have unanswered requests.
 */
export const MESSAGES_MAX = 8

/**
 * The only supported revision with arrays. A request without a revision header counts as this
 * revision.
 */
const WITH_ARRAYS = '2025-03-26'

const INVALID_REQUEST = -32_600

const refusal = (message: string) => ({ jsonrpc: '2.0', id: null, error: { code: INVALID_REQUEST, message } })

/**
 * Answers each message of an array as if it had come in a request of its own. Notifications have no
 * answer. An array of notifications only has no answer either.
 *
 * @param answerOne answers a message in the form that the given value of `Accept` allows
 */
export async function answerArray(
  messages: unknown[],
  headers: IncomingHttpHeaders,
  answerOne: (message: unknown, accept: string) => Promise<Response>,
): Promise<Response> {
  const { acceptedForms, inAcceptedForm, NOT_ACCEPTABLE } = await import('./answer-message.ts')
  const accepted = acceptedForms(headers.accept)
  if (!accepted.json && !accepted.stream) return Response.json(NOT_ACCEPTABLE, { status: 406 })
  const wrong = whyNoArray(messages, headers['mcp-protocol-version'])
  if (wrong !== undefined) return Response.json(refusal(wrong), { status: 400 })
  const answers = await Promise.all(
    messages.map(async (message) => {
      const misfit = whyNoMessage(message)
      if (misfit !== undefined) return { ...refusal(misfit), id: Object(message).id ?? null }
      const response = await answerOne(message, 'application/json')
      return response.body === null ? undefined : await response.json()
    }),
  )
  const given = answers.filter((answer) => answer !== undefined)
  return given.length === 0 ? new Response(null, { status: 202 }) : inAcceptedForm(given, accepted)
}

function whyNoArray(messages: unknown[], revision: unknown): string | undefined {
  if (revision !== undefined && revision !== WITH_ARRAYS)
    return 'A request must have one message, because revision 2025-06-18 of the protocol removed arrays of messages. Send each message in a request of its own.'
  if (messages.length === 0) return 'An array must have at least one message.'
  if (messages.length > MESSAGES_MAX) return `An array may have at most ${MESSAGES_MAX} messages.`
  return undefined
}

function whyNoMessage(message: unknown): string | undefined {
  if (!isObject(message) || message.jsonrpc !== '2.0') return 'A message must be a JSON-RPC 2.0 object.'
  return message.method === 'initialize'
    ? 'An array must not contain initialize: send it in a request of its own.'
    : undefined
}
