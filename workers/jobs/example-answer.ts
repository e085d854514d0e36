import { setTimeout as delay } from 'node:timers/promises'
import type { Api, ApiEndpoint } from '../../src/catalog/catalog.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { interpretAnswers } from '../upstream/interpret.ts'
import { dataOutcome, failureOutcome, type Outcome } from '../upstream/outcome.ts'
import { withCallerValues } from './caller-values.ts'
import type { CallRun } from './run-call.ts'

/** Answers a test call by the recorded example with the caller's values, or by the failure of its scenario. */
export async function answerFromExample(
  { api, endpoint: { endpoint } }: { api: Api; endpoint: ApiEndpoint },
  { scenario, raw, parameters: given }: CallJob,
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
  if (raw) return { body: Buffer.from(JSON.stringify(example.response)) }
  const context = { now: example.now === undefined ? Date.now() : Date.parse(example.now) }
  const parameters =
    endpoint.complete?.(withDefaults(endpoint, example.parameters), context) ??
    withDefaults(endpoint, example.parameters)
  const isSeveral = Array.isArray(endpoint.request(parameters, context))
  const bodies = isSeveral && Array.isArray(example.response) ? example.response : [example.response]
  const answers = bodies.map((body) => ({ status: 200, headers: {}, body }))
  const read = interpretAnswers({ upstream: api.upstream, endpoint }, answers, { parameters, context })
  if (!('data' in read)) return failureOutcome(read.responseClass, read.cause)
  return dataOutcome(withCallerValues(read.data, parameters, given))
}

function withDefaults(endpoint: ApiEndpoint['endpoint'], parameters: Record<string, unknown>): Record<string, unknown> {
  const defaults = Object.entries(endpoint.parameters.properties).flatMap(([name, schema]) => {
    const value: unknown = Reflect.get(schema, 'default')
    return value === undefined ? [] : [[name, value] as const]
  })
  return { ...Object.fromEntries(defaults), ...parameters }
}
