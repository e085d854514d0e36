import type { CallToolResult } from '@modelcontextprotocol/server'
import { type GatewayError, type PublicError, publicError } from '../errors.ts'
import type { CallOutcome, SendCall } from './call-client.ts'

/** A call as the result of a tool: the data, or the failure with its code and hint, so that the model can mend it. */
export async function callAsTool(
  send: SendCall,
  { slug, endpoint, parameters }: { slug: string; endpoint: string; parameters: Record<string, unknown> },
  shape: (data: Record<string, unknown>) => Record<string, unknown> = (data) => data,
): Promise<CallToolResult> {
  // Models write null for what they leave out.
  const given = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null))
  const path = `/v1/call/${encodeURIComponent(slug)}/${encodeURIComponent(endpoint.replace(/^\/+/, ''))}`
  const outcome = await send(path, given)
  if (outcome.task) return { resultType: 'task', ...outcome.task, content: [] }
  return resultOf(outcome, shape)
}

/** Many calls as the result of a tool; one that failed has its error in its place. */
export async function callManyAsTool(
  send: SendCall,
  { calls, take = 'all' }: { calls: { parameters?: Record<string, unknown> }[]; take?: 'all' | 'fit' },
): Promise<CallToolResult> {
  const given = calls.map((call) => ({ ...call, parameters: call.parameters ?? {} }))
  const outcome = await send('/v1/batch', { calls: given, take })
  const _meta = metaOf(outcome.headers)
  if (outcome.status !== 200) return { ...failure(failureOf(outcome.body)), _meta }
  const lines = outcome.body
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const { done: _, ...totals } = lines.pop()
  const structuredContent = { results: lines.sort((a, b) => a.index - b.index), ...totals }
  // Of calls that all failed nothing was recorded.
  const content = totals.ok > 0 ? contentOf(structuredContent, outcome) : textOf(structuredContent)
  return { content, structuredContent, _meta }
}

/** The answer to a call as the result of a tool. */
export function resultOf(
  outcome: CallOutcome,
  shape: (data: Record<string, unknown>) => Record<string, unknown>,
): CallToolResult {
  const _meta = metaOf(outcome.headers)
  if (outcome.status !== 200) return { ...failure(failureOf(outcome.body)), _meta }
  const structuredContent = shape(JSON.parse(outcome.body).data)
  return { content: contentOf(structuredContent, outcome), structuredContent, _meta }
}

/** What a model reads. It does not see `_meta`: without a word here, it would take the recording for an answer. */
function contentOf(structuredContent: object, { headers }: CallOutcome): CallToolResult['content'] {
  const content = textOf(structuredContent)
  if (headers['x-gateway-mode'] === 'test') content.push({ type: 'text', text: TEST_REMARK })
  return content
}

function textOf(structuredContent: object): CallToolResult['content'] {
  return [{ type: 'text', text: JSON.stringify(structuredContent) }]
}

/** What a model is to know of the data of a test key. */
const TEST_REMARK = 'Recorded example, not for your parameters. Use a live key for real data.'

/** A failure that no call was needed for. */
export function refusal(error: GatewayError, baseUrl: string): CallToolResult {
  return failure(publicError(error, baseUrl))
}

function failure({ code, message, hint, docs }: PublicError): CallToolResult {
  return { isError: true, content: [{ type: 'text', text: JSON.stringify({ code, message, hint, docs }) }] }
}

/** The failure that a body tells of, in either shape: a call's own, or that of the route by which the call is looked up. */
export function failureOf(body: string): PublicError {
  const answer = JSON.parse(body)
  return typeof answer.error === 'object' ? answer.error : answer
}

/** What a client may want to know of the call besides its data. */
function metaOf(headers: Record<string, unknown>): Record<string, unknown> {
  const names = ['x-call-id', 'x-gateway-mode', 'ratelimit', 'retry-after', 'cache-status']
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] === undefined ? [] : [[`agent-api-gateway/${name}`, headers[name]]])),
  )
}
