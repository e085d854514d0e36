import { setTimeout as delay } from 'node:timers/promises'
import type { Api, ApiEndpoint } from '../../src/catalog/catalog.ts'
import type { CallContext, Endpoint } from '../../src/catalog/upstream.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { interpretAnswers } from '../upstream/interpret.ts'
import { dataOutcome, failureOutcome, type Outcome } from '../upstream/outcome.ts'
import { withCallerValues } from './caller-values.ts'
import type { CallRun } from './run-call.ts'

/**
 * Answers a test call without its upstream: by the failure of its scenario, by what the recordings tell of the caller's
 * parameters, or by the recorded example. The example has the caller's values where it repeats parameters, and the
 * outcome says for which parameters it was recorded: its other values are facts about those.
 */
export async function answerFromExample(
  { api, endpoint: { endpoint } }: { api: Api; endpoint: ApiEndpoint },
  { scenario, raw, parameters: given, extra }: CallJob,
  { signal, progress }: Pick<CallRun, 'signal' | 'progress'>,
): Promise<Outcome> {
  switch (scenario) {
    case 'upstream-500':
      return { code: 'UPSTREAM_ERROR' }
    case 'timeout':
      return { code: 'UPSTREAM_TIMEOUT' }
    case 'rate-limited':
      return { code: 'UPSTREAM_RATE_LIMITED', retryAfterMs: 30_000 }
    case 'invalid':
      return { code: 'UPSTREAM_INVALID_RESPONSE' }
  }
  if (scenario?.startsWith('slow-')) {
    progress.isUnderWay = true
    progress.isSent = true
    await delay(Number(scenario.slice('slow-'.length)), undefined, { signal })
  }
  const { example } = endpoint
  const context = { now: example.now === undefined ? Date.now() : Date.parse(example.now) }
  const recorded = completed(endpoint, example.parameters, context)
  const isRecorded = extra.length === 0 && isSame(given, recorded)
  const made = isRecorded || extra.length > 0 ? undefined : example.responseFor?.(given, example.response)
  const [response, parameters] = made === undefined ? [example.response, recorded] : [made, given]
  const recordedFor = isRecorded || made !== undefined ? {} : { recordedFor: queryOf(recorded) }
  if (raw) return { body: Buffer.from(JSON.stringify(response)), ...recordedFor }
  const isSeveral = Array.isArray(endpoint.request(parameters, context))
  const bodies = isSeveral && Array.isArray(response) ? response : [response]
  const answers = bodies.map((body) => ({ status: 200, headers: {}, body }))
  const read = interpretAnswers({ upstream: api.upstream, endpoint }, answers, { parameters, context })
  if (!('data' in read)) return failureOutcome(read.responseClass, read.cause)
  return { ...dataOutcome(withCallerValues(read.data, parameters, given)), ...recordedFor }
}

/** As admission completes what a caller gives. */
function completed(endpoint: Endpoint, parameters: Record<string, unknown>, context: CallContext) {
  const given = withDefaults(endpoint, parameters)
  return endpoint.complete?.(given, context) ?? given
}

/** Values are compared as they are written: an id may be a number in one call and text in the other. */
function isSame(given: Record<string, unknown>, recorded: Record<string, unknown>): boolean {
  const names = new Set([...Object.keys(given), ...Object.keys(recorded)])
  return [...names].every((name) => String(given[name] ?? '') === String(recorded[name] ?? ''))
}

/** Goes into a header, whose characters a query string has. */
function queryOf(parameters: Record<string, unknown>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.append(name, String(value))
  return query.toString()
}

export function withDefaults(endpoint: Endpoint, parameters: Record<string, unknown>): Record<string, unknown> {
  const defaults = Object.entries(endpoint.parameters.properties).flatMap(([name, schema]) => {
    const value: unknown = Reflect.get(schema, 'default')
    return value === undefined ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(defaults), ...parameters }
}
