import type { CallToolResult } from '@modelcontextprotocol/server'
import Type, { type Static } from 'typebox'
import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import { parseKeepingDigits } from '../catalog/long-numbers.ts'
import type { GatewayError } from '../errors.ts'
import { type PublicError, publicError } from '../http/answer/public-error.ts'
import { adaptTo, asWritten } from './adapt-arguments.ts'
import type { CallOutcome, SendCall } from './call-client.ts'
import { fitData, RESULT_CHARACTERS_MAX, shareOf, Truncated } from './fit-result.ts'
import { type Selection, select } from './selection.ts'
import { taskIdOf } from './task-id.ts'

/** A call of a tool, and which part of its data the tool returns. */
export interface ToolCall {
  api: Api
  endpoint: ApiEndpoint
  parameters: Record<string, unknown>
  selection: Selection
}

/** Members of a result besides the data. Models read them; they do not see `_meta`. */
export const About = {
  mode: Type.Optional(Type.Literal('test')),
  note: Type.Optional(Type.String()),
  link: Type.Optional(Type.String({ description: 'The source that answered (rel="via"), if the API has two sources' })),
  truncated: Type.Optional(Truncated),
}

type AboutResult = Static<Type.TObject<typeof About>>

/** Combines the data and the members about them into the result of a tool. */
export type ResultForm = (data: Record<string, unknown>, about: AboutResult) => Record<string, unknown>

/** Characters that are reserved for the members around the data. */
const AROUND_CHARACTERS = 1_000

/**
 * Makes a call and returns the result of a tool: the data, or the failure with its code and hint,
 * so that the model can correct its call.
 */
export async function callAsTool(
  send: SendCall,
  { api, endpoint, parameters, selection }: ToolCall,
  form: ResultForm,
): Promise<CallToolResult> {
  const path = `/v1/call/${encodeURIComponent(api.slug)}/${encodeURIComponent(endpoint.path.slice(1))}`
  const outcome = await send(path, adaptedParameters(endpoint, parameters))
  if (outcome.task) {
    const taskId = taskIdOf(outcome.task.taskId, selection)
    return { resultType: 'task', ...outcome.task, taskId, content: [] }
  }
  return resultOf(outcome, selection, form)
}

function adaptedParameters(
  { declaration: endpoint }: ApiEndpoint,
  parameters: Record<string, unknown>,
): Record<string, unknown> {
  return adaptTo(endpoint.parameters, asWritten(parameters)) as Record<string, unknown>
}

/** A call of a batch. If its API or endpoint does not exist, the batch route reports it. */
export interface BatchedCall {
  api: string
  path: string
  endpoint: ApiEndpoint | undefined
  parameters: Record<string, unknown>
  selection: Selection
}

/**
 * Makes many calls and returns the result of a tool. A failed call has its error in its place. One
 * length limit applies to all results together.
 */
export async function callManyAsTool(
  send: SendCall,
  { calls, take = 'all' }: { calls: BatchedCall[]; take?: 'all' | 'fit' },
): Promise<CallToolResult> {
  const sent = calls.map(({ api, path, endpoint, parameters }) => ({
    api,
    endpoint: path,
    parameters: endpoint ? adaptedParameters(endpoint, parameters) : parameters,
  }))
  const outcome = await send('/v1/batch', { calls: sent, take })
  const _meta = metaOf(outcome.headers)
  if (outcome.status !== 200) return { ...failure(failureOf(outcome.body)), _meta }
  const isLong = outcome.body.length > RESULT_CHARACTERS_MAX
  const lines: BatchLine[] = outcome.body
    .trimEnd()
    .split('\n')
    .map((line) => (isLong ? JSON.parse(line) : parseKeepingDigits(line)))
  const { done: _, ...totals } = lines.pop() ?? { done: true }
  lines.sort((a, b) => a.index - b.index)
  const results = lines.map((line) => batchResult(line, calls[line.index]?.selection ?? {}, outcome))
  const fitted = isLong ? fitResults(results) : results
  const structuredContent = { results: fitted, ...totals }
  return { content: textOf(structuredContent), structuredContent, _meta }
}

/** A line of a batch's answer. */
interface BatchLine {
  index: number
  data?: Record<string, unknown>
  recordedFor?: string
  example?: string
  [member: string]: unknown
}

function batchResult(line: BatchLine, selection: Selection, { headers }: CallOutcome): BatchLine {
  const { data, recordedFor, example, ...others } = line
  // A failed call has no recorded data.
  if (data === undefined) return line
  const about = isTest(headers) ? { mode: 'test', note: noteOf(recordedFor, example) } : {}
  return { ...others, ...about, data: select(data, selection) }
}

function fitResults(results: BatchLine[]): BatchLine[] {
  const lengths = results.map(({ data }) => (data === undefined ? 0 : JSON.stringify(data).length))
  const around = JSON.stringify(results.map(({ data: _, ...others }) => others)).length
  const share = shareOf(lengths, RESULT_CHARACTERS_MAX - AROUND_CHARACTERS - around)
  return results.map((result) => (result.data === undefined ? result : { ...result, ...fitData(result.data, share) }))
}

/** Turns the answer to a call into the result of a tool. */
export function resultOf(outcome: CallOutcome, selection: Selection, form: ResultForm): CallToolResult {
  const _meta = metaOf(outcome.headers)
  if (outcome.status !== 200) return { ...failure(failureOf(outcome.body)), _meta }
  const charactersMax = RESULT_CHARACTERS_MAX - AROUND_CHARACTERS
  // If the whole answer is short, the data need not be measured, and their numbers keep all digits.
  const isLong = outcome.body.length > charactersMax
  const answer = isLong ? JSON.parse(outcome.body) : parseKeepingDigits(outcome.body)
  const selected = select(answer.data, selection)
  const { data, ...cut } = isLong ? fitData(selected, charactersMax) : { data: selected }
  const { headers } = outcome
  const note = () => noteOf(headers['x-gateway-recorded-for'], headers['x-gateway-example'])
  const about = isTest(headers) ? { mode: 'test' as const, note: note() } : {}
  const structuredContent = form(data, { ...about, ...sourceOf(headers), ...cut })
  return { content: textOf(structuredContent), structuredContent, _meta }
}

function textOf(structuredContent: object): CallToolResult['content'] {
  return [{ type: 'text', text: JSON.stringify(structuredContent) }]
}

/**
 * The header `Link`, if the API has two sources: the link with `via` says which source answered.
 * Other APIs have only links to their terms, which are left out.
 */
function sourceOf({ link }: Record<string, unknown>): Pick<AboutResult, 'link'> {
  return typeof link === 'string' && link.includes('rel="via"') ? { link } : {}
}

function isTest(headers: Record<string, unknown>): boolean {
  return headers['x-gateway-mode'] === 'test'
}

/**
 * What a model must know about the data of a test call.
 *
 * @param recordedFor the parameters of the recording, as a query string
 * @param example the kind of example, if there is no recording
 */
function noteOf(recordedFor: unknown, example: unknown): string {
  const live = 'Use a live key for real data.'
  if (example === 'document') return `Example from the API's document; it does not depend on your parameters. ${live}`
  if (example === 'made')
    return `Made from the schema in the API's document; it does not depend on your parameters. ${live}`
  if (typeof recordedFor !== 'string') return `Recorded example. ${live}`
  const parameters = [...new URLSearchParams(recordedFor)].map(([name, value]) => `${name}=${value}`).join(', ')
  return `Recorded example, not for your parameters: recorded for ${parameters}. ${live}`
}

/** A failure for which no call was made. */
export function refusal(error: GatewayError, baseUrl: string): CallToolResult {
  return failure(publicError(error, baseUrl))
}

function failure({ code, message, hint, docs }: PublicError): CallToolResult {
  return { isError: true, content: [{ type: 'text', text: JSON.stringify({ code, message, hint, docs }) }] }
}

/**
 * The failure in a body of either form: the form of a call, or the form of the route that looks up
 * calls.
 */
export function failureOf(body: string): PublicError {
  const answer = JSON.parse(body)
  return typeof answer.error === 'object' ? answer.error : answer
}

/** Metadata of a call for the client, besides its data. */
function metaOf(headers: Record<string, unknown>): Record<string, unknown> {
  const names = [
    'x-call-id',
    'x-gateway-mode',
    'x-gateway-recorded-for',
    'x-gateway-example',
    'ratelimit',
    'retry-after',
    'cache-status',
    'link',
  ]
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] === undefined ? [] : [[`agent-api-gateway/${name}`, headers[name]]])),
  )
}
