import { setTimeout as delay } from 'node:timers/promises'
import type { ApiEndpoint } from '../../src/catalog/api-endpoint.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { StatusError } from '../errors/attempt-error.ts'
import { interpretAnswers } from '../upstream/interpret.ts'
import { dataOutcome, failureOutcome, type Outcome } from '../upstream/outcome.ts'
import { contextOfRecording, isRecordedCall, recordedParameters } from '../upstream/recorded-call.ts'
import { withCallerValues } from './caller-values.ts'
import type { CallRun } from './run-call.ts'

/**
 * Answers a test call without its upstream: by the failure of its scenario, by what the recordings
 * tell of the caller's parameters, or by the recorded example. The example has the caller's values
 * if it repeats parameters, and the outcome says for which parameters it was recorded: its other
 * values are facts about those. If nothing was recorded, the outcome says what stands for it.
 */
export async function answerFromExample(
  { api, endpoint: { declaration: endpoint } }: { api: Api; endpoint: ApiEndpoint },
  { scenario, raw, parameters: given, extra }: CallJob,
  { signal, progress }: Pick<CallRun, 'signal' | 'progress'>,
): Promise<Outcome> {
  switch (scenario) {
    case 'upstream-500':
      return { code: 'UPSTREAM_ERROR', cause: new StatusError(500) }
    case 'timeout':
      return { code: 'UPSTREAM_TIMEOUT' }
    case 'rate-limited':
      return { code: 'UPSTREAM_RATE_LIMITED', retryAfterMs: 30_000 }
    case 'invalid':
      return { code: 'UPSTREAM_INVALID_RESPONSE' }
  }
  if (scenario?.startsWith('slow-')) {
    progress.isUnderWay = true
    progress.reach = 'sent'
    await delay(Number(scenario.slice('slow-'.length)), undefined, { signal })
  }
  const { example } = endpoint
  const context = contextOfRecording(endpoint)
  const recorded = recordedParameters(endpoint)
  const isRecorded = extra.length === 0 && isRecordedCall(endpoint, given)
  const made = isRecorded || extra.length > 0 ? undefined : example.responseFor?.(given, example.response)
  const [response, parameters] = made === undefined ? [example.response, recorded] : [made, given]
  const about = example.origin
    ? { example: example.origin }
    : isRecorded || made !== undefined
      ? {}
      : { recordedFor: queryOf(recorded) }
  if (raw) return { body: Buffer.from(JSON.stringify(response ?? null)), ...about }
  const isSeveral = Array.isArray(endpoint.request(parameters, context))
  const bodies = isSeveral && Array.isArray(response) ? response : [response]
  const answers = bodies.map((body) => ({ status: 200, headers: {}, body }))
  const read = interpretAnswers({ upstream: api.upstream, endpoint }, answers, { parameters, context })
  if (!('data' in read)) return failureOutcome(read.responseClass, read.cause)
  return { ...dataOutcome(withCallerValues(read.data, parameters, given)), ...about }
}

/** The text goes into a header, so it must have only the characters of a query string. */
function queryOf(parameters: Record<string, unknown>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.append(name, String(value))
  return query.toString()
}
