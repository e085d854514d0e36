import { cacheKeys } from '../../src/cache/cache-key.ts'
import { UNPROVEN_KEYS_USED } from '../../src/caps/refusal.ts'
import type { ApiEndpoint } from '../../src/catalog/api-endpoint.ts'
import { type Api, isCallable, PAUSED_RETRY_MS, withCallerKey } from '../../src/catalog/catalog.ts'
import { type ErrorCode, GatewayError, toGatewayError } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { startCall } from '../../src/queue/results.ts'
import { enqueueRevalidateKey } from '../../src/queue/validate-key-job.ts'
import { hasReached } from '../../src/queue/verdict.ts'
import { bucketOf, SHARED_BUCKET, waitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { CALLER_LEFT, DEADLINE_PASSED, LOCK_LOST } from '../errors/abort-reasons.ts'
import { StatusError } from '../errors/attempt-error.ts'
import type { UpstreamCall } from '../upstream/call-upstream.ts'
import {
  attemptFailure,
  type CallProgress,
  type Failure,
  isFailure,
  type Outcome,
  progressOf,
} from '../upstream/outcome.ts'
import type { ProviderKeys } from '../upstream/provider-keys.ts'
import { endPermitWait } from '../upstream/send-under-permit.ts'
import { type CallOutcome, callThroughCache } from './cached-call.ts'
import { answerFromExample } from './example-answer.ts'
import { checkRightsAgain } from './present-rights.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** One run of a call by a worker. A call runs again if its worker was lost. */
export interface CallRun extends Pick<UpstreamCall, 'times' | 'progress' | 'remainingMs' | 'signal'> {
  /** An earlier worker was lost while it ran this call. Nobody knows how far that run got. */
  isSecondRun: boolean
}

/** After these failures of an endpoint that changes data, it is certain that nothing changed. */
const CHANGED_NOTHING: ReadonlySet<ErrorCode> = new Set([
  // The upstream stated them in an answer below 500, so it has changed nothing.
  'UPSTREAM_NOT_FOUND',
  'UPSTREAM_REJECTED',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_AUTH_FAILED',
  'UPSTREAM_REDIRECT_BLOCKED',
  'PROVIDER_KEY_INVALID',
  // Not certain here, but nobody reads the outcome.
  'CALL_CANCELLED',
])

/**
 * The outcome of a call whose request was written to an endpoint of the effect `once`. "Never sent"
 * and "sent, and the answer was lost" must not look alike, because callers repeat what was never
 * sent.
 */
function outcomeOfWritten(outcome: Outcome): Outcome {
  if (!isFailure(outcome) || CHANGED_NOTHING.has(outcome.code)) return outcome
  const { cause } = outcome
  if (cause instanceof StatusError && cause.status < 500) return outcome
  return { code: 'OUTCOME_UNKNOWN', cause: cause ?? new Error(outcome.code) }
}

/** Never throws: an error becomes the outcome. */
export async function runCall(deps: WorkerDeps, call: CallJob, run: CallRun): Promise<CallOutcome> {
  const resolved = resolveCall(deps, call)
  if (!resolved) {
    return { outcome: { code: 'INTERNAL_ERROR', cause: new Error('this worker has not loaded the endpoint') } }
  }
  const made = await makeOutcome(deps, resolved, run).catch(
    (error): CallOutcome => ({ outcome: failureOf(error, run) }),
  )
  // Nobody shares a request that is never repeated: its progress is the call's own.
  const isWritten = resolved.endpoint.declaration.effect === 'once' && hasReached(run.progress.reach, 'sent')
  return isWritten ? { ...made, outcome: outcomeOfWritten(made.outcome) } : made
}

/** The outcome of a run that an error ended. */
function failureOf(error: unknown, { times, progress, signal }: CallRun): Outcome {
  endPermitWait(times)
  if (signal.reason === CALLER_LEFT) return { code: 'CALL_CANCELLED' }
  return signal.reason === DEADLINE_PASSED ? outcomeAtDeadline(progress) : toOutcome(error)
}

interface ResolvedCall {
  api: Api
  endpoint: ApiEndpoint
  call: CallJob
}

function resolveCall({ catalog }: WorkerDeps, call: CallJob): ResolvedCall | undefined {
  const api = catalog.checkedBy(call)
  const endpoint = api?.endpoints.get(call.endpoint)
  return api && endpoint && { api, endpoint, call }
}

/**
 * Takes a call out of the wait queue, unless a request used its place. Never throws.
 *
 * @param run undefined if the call is not run, because nobody waits for it
 */
export async function leavePlace(deps: WorkerDeps, call: CallJob, run?: CallRun): Promise<void> {
  const resolved = resolveCall(deps, call)
  if (!resolved) return
  const { api, endpoint } = resolved
  if (run) {
    // A coalesced request may go on for other calls in the place of this call.
    await run.progress.sharedRequestEnd?.catch(() => undefined)
    // A request to a fallback source leaves a place at the first source unused.
    const isPlaceUsed = run.times.attempts > 0 && api.fallback === undefined
    // After a lost lock, the worker that has the job now leaves the queue.
    if (isPlaceUsed || run.signal.reason === LOCK_LOST) return
  }
  const coalescedKey = cacheKeys(endpoint.declaration, call)?.coalesced
  await deps.caps.leaveWaitQueue(waitQueueEntry(call, { coalescedKey }))
}

/** @throws what ends the run: an error of the gateway or of a dependency, or the signal's reason */
async function makeOutcome(
  deps: WorkerDeps,
  { api, endpoint, call }: ResolvedCall,
  run: CallRun,
): Promise<CallOutcome> {
  // If the lost worker may have sent a request, no reason of this run is the answer.
  const mayBeWritten = run.isSecondRun && endpoint.declaration.effect === 'once'
  if (run.remainingMs() <= 0 && !mayBeWritten) return { outcome: { code: 'DEADLINE_EXCEEDED' } }
  // The call was cancelled while it was queued, or an earlier run ended it. Its outcome is stored
  // already.
  if (call.isAsync && !(await startCall(deps.redis, call))) return { outcome: { code: 'CALL_CANCELLED' } }
  if (mayBeWritten) {
    return { outcome: { code: 'OUTCOME_UNKNOWN', cause: new Error('a worker was lost during the call') } }
  }
  if (api.pausedMode === 'hold') {
    run.times.waitsSince = performance.now()
    await deps.held.wait(api, run.signal)
    endPermitWait(run.times)
  }
  checkCallable(api, call)
  if (call.mode === 'test') return { outcome: await answerFromExample({ api, endpoint }, call, run) }
  const { providerKey, accountId } = call
  const access: UpstreamAccess = providerKey
    ? await callerAccess(deps, api, { providerKey, accountId })
    : { api, currentKey: () => api.key, bucket: SHARED_BUCKET }
  const result = await callThroughCache(deps, {
    endpoint: endpoint.declaration,
    call,
    ...access,
    ensureCallable: async ({ hasWaited }) => {
      checkCallable(api, call)
      await checkRightsAgain(deps, { api, endpoint, call }, { hasWaited: hasWaited || run.times.attempts > 0 })
    },
    ...run,
  })
  const { outcome } = result
  if (!providerKey || !isFailure(outcome)) return result
  return { ...result, outcome: failureWithKey(deps, call, { providerKey, failure: outcome }) }
}

/** Whose key a call uses at its upstream, and whose cap therefore bounds it. */
type UpstreamAccess = Pick<UpstreamCall, 'api' | 'currentKey' | 'bucket'>

/**
 * @throws GatewayError if the API was paused or switched off after the call was queued, or if this
 *   worker does not know yet that the API has a key
 */
function checkCallable(api: Api, { mode, providerKey }: Pick<CallJob, 'mode' | 'providerKey'>): void {
  if (api.pausedMode === 'refuse') throw new GatewayError('API_PAUSED', { retryAfterMs: PAUSED_RETRY_MS })
  if (mode === 'test') return
  // `enabled` is about the operator's own access; a caller's key needs `isCallable` alone.
  if (!isCallable(api) || (!providerKey && !api.enabled)) throw new GatewayError('API_NOT_ENABLED')
}

/**
 * The key of the account's own that the job names.
 * @throws GatewayError as `ProviderKeys.of`
 */
async function callerAccess(
  { providerKeys }: { providerKeys: ProviderKeys },
  api: Api,
  { providerKey, accountId }: { providerKey: NonNullable<CallJob['providerKey']>; accountId: string },
): Promise<UpstreamAccess> {
  const key = await providerKeys.of(providerKey.id, accountId)
  return { api: withCallerKey(api), currentKey: () => key, bucket: bucketOf({ providerKey }) }
}

/**
 * The outcome at the deadline: 502 in an attempt or after a failed attempt, 503 in any other wait.
 */
function outcomeAtDeadline(progress: CallProgress): Failure {
  const { isUnderWay, lastFailure } = progressOf(progress)
  if (isUnderWay) return { code: 'UPSTREAM_TIMEOUT' }
  return lastFailure ? attemptFailure(lastFailure) : { code: 'DEADLINE_EXCEEDED' }
}

/**
 * A failure in the words for the owner of the key. If the upstream refused the key, a job validates
 * the key once more.
 */
function failureWithKey(
  { queues, log }: WorkerDeps,
  call: CallJob,
  { providerKey, failure }: { providerKey: NonNullable<CallJob['providerKey']>; failure: Failure },
): Failure {
  if (providerKey.isUnproven && failure.code === 'UPSTREAM_CAP_EXHAUSTED') {
    return { ...failure, message: UNPROVEN_KEYS_USED }
  }
  if (failure.code !== 'UPSTREAM_AUTH_FAILED') return failure
  const group = call.group === undefined ? {} : { group: call.group }
  enqueueRevalidateKey(queues, call.slug, { v: 1, providerKeyId: providerKey.id, ...group }).catch((error) =>
    log.warn({ err: error, callId: call.id }, 'failed to queue the validation of a refused key'),
  )
  return { code: 'PROVIDER_KEY_INVALID', cause: failure.cause }
}

function toOutcome(error: unknown): Outcome {
  const { code, message, details } = toGatewayError(error)
  return { code, message, retryAfterMs: details.retryAfterMs, cause: details.cause ?? error }
}
