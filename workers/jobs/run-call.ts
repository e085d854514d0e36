import { cacheKeys } from '../../src/cache/cache-key.ts'
import { bucketOf, type CapBucket, SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { UNPROVEN_KEYS_USED } from '../../src/caps/refusal.ts'
import type { ApiEndpoint } from '../../src/catalog/api-endpoint.ts'
import { type Api, type Catalog, isOpen, PAUSED_RETRY_MS, withCallerKey } from '../../src/catalog/catalog.ts'
import type { Db } from '../../src/db/database.ts'
import { type ErrorCode, GatewayError, toGatewayError } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { CallTimes } from '../../src/queue/reply-head.ts'
import { startCall } from '../../src/queue/results.ts'
import { enqueueRevalidateKey } from '../../src/queue/validate-key-job.ts'
import { hasReached } from '../../src/queue/verdict.ts'
import { type WaitQueueEntry, waitQueueIdentity } from '../../src/queue/wait-queue-entry.ts'
import { type CachedOutcome, type CachingDeps, callThroughCache } from '../cache/cached-call.ts'
import { CALLER_LEFT, DEADLINE_PASSED, LOCK_LOST } from '../errors/abort-reasons.ts'
import { StatusError } from '../errors/attempt-error.ts'
import { ofSharedCap, type PermitRequest } from '../permits/permit-request.ts'
import { attemptFailure, type Failure, isFailure, type Outcome } from '../upstream/outcome.ts'
import type { ProviderKeys } from '../upstream/provider-keys.ts'
import type { CallProgress } from '../upstream/send-once.ts'
import { answerFromExample } from './example-answer.ts'
import type { HeldCalls } from './held-calls.ts'

export interface RunDeps extends CachingDeps {
  catalog: Catalog
  db: Db
  providerKeys: ProviderKeys
  held: HeldCalls
}

export interface CallRun {
  times: CallTimes
  progress: CallProgress
  /** An earlier worker was lost while it ran this call, at a point that is not known. */
  isSecondRun: boolean
  remainingMs: () => number
  signal: AbortSignal
}

/** Failures that the upstream itself stated, in an answer below 500: nothing was changed. */
const STATED: ReadonlySet<ErrorCode> = new Set([
  'UPSTREAM_NOT_FOUND',
  'UPSTREAM_REJECTED',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_AUTH_FAILED',
  'UPSTREAM_REDIRECT_BLOCKED',
  'PROVIDER_KEY_INVALID',
  // Nobody waits for its outcome.
  'CALL_CANCELLED',
])

/** Of a request that is never repeated, a failure says whether the change may have happened. */
function inKnownTerms({ endpoint }: KnownCall, { progress }: CallRun, result: CachedOutcome): CachedOutcome {
  // Nobody shares such a request: its progress is the call's own.
  if (endpoint.endpoint.effect !== 'once' || !hasReached(progress.reach, 'sent')) return result
  return { ...result, outcome: outcomeOfOnce(result.outcome) }
}

/**
 * The outcome of a request that was written and is never repeated. "Never sent" and "sent, and the
 * answer was lost" must not look alike: callers repeat the former.
 */
function outcomeOfOnce(outcome: Outcome): Outcome {
  if (!isFailure(outcome) || STATED.has(outcome.code)) return outcome
  const { cause } = outcome
  if (cause instanceof StatusError && cause.status < 500) return outcome
  return { code: 'OUTCOME_UNKNOWN', cause: cause ?? new Error(outcome.code) }
}

/** Never throws: an error becomes the outcome. */
export async function runCall(deps: RunDeps, call: CallJob, run: CallRun): Promise<CachedOutcome> {
  const known = findKnown(deps, call)
  if (!known) {
    return { outcome: { code: 'INTERNAL_ERROR', cause: new Error('this worker does not know the endpoint') } }
  }
  const result = inKnownTerms(known, run, await runToOutcome(deps, known, run))
  return leaveWhenSettled(deps, known, { run, result })
}

async function runToOutcome(deps: RunDeps, known: KnownCall, run: CallRun): Promise<CachedOutcome> {
  const { progress, signal } = run
  // The signal ends the request too: its progress must be read before that.
  let atDeadline: Failure = { code: 'DEADLINE_EXCEEDED' }
  const onAbort = (): void => {
    atDeadline = outcomeAtDeadline(progress)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await runKnown(deps, known, run)
  } catch (error) {
    if (signal.reason === CALLER_LEFT) return { outcome: { code: 'CALL_CANCELLED' } }
    return { outcome: signal.reason === DEADLINE_PASSED ? atDeadline : toOutcome(error) }
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

interface KnownCall {
  api: Api
  endpoint: ApiEndpoint
  call: CallJob
}

function findKnown({ catalog }: RunDeps, call: CallJob): KnownCall | undefined {
  const api = catalog.get(call.slug)
  const endpoint = api?.endpoints.get(call.endpoint)
  return api && endpoint && { api, endpoint, call }
}

/**
 * Takes a call that is not run, because nobody waits for it, out of the wait queue; one without a
 * ticket may have joined late.
 */
export function skipCall(deps: RunDeps, call: CallJob): void {
  const known = findKnown(deps, call)
  if (known) leaveInBackground(deps, known)
}

async function runKnown(deps: RunDeps, { api, endpoint, call }: KnownCall, run: CallRun): Promise<CachedOutcome> {
  if (run.remainingMs() <= 0) return { outcome: { code: 'DEADLINE_EXCEEDED' } }
  // Cancelled before this job became active, or ended by an earlier run: the outcome that is kept
  // already is its answer.
  if (call.isAsync && !(await startCall(deps.redis, call))) return { outcome: { code: 'CALL_CANCELLED' } }
  if (run.isSecondRun && endpoint.endpoint.effect === 'once') {
    return { outcome: { code: 'OUTCOME_UNKNOWN', cause: new Error('a worker was lost during the call') } }
  }
  if (api.pausedMode === 'hold') await deps.held.wait(api, run.signal)
  // Accepted before its node knew of the pause, or held until now.
  if (api.pausedMode === 'refuse') return { outcome: { code: 'API_PAUSED', retryAfterMs: PAUSED_RETRY_MS } }
  if (call.mode === 'test') return { outcome: await answerFromExample({ api, endpoint }, call, run) }
  const permitRequest = permitRequestOf(call)
  const ensureOpen = (): void => checkOpen(api, call)
  ensureOpen()
  const { providerKey, accountId } = call
  const upstreamKey = providerKey ? await callerKey(deps, api, { providerKey, accountId }) : operatorKey(api)
  const result = await callThroughCache(deps, {
    endpoint: endpoint.endpoint,
    call,
    ...upstreamKey,
    permitRequest,
    ensureOpen,
    ...run,
  })
  return inTermsOfKey(deps, call, result)
}

interface UpstreamKey {
  api: Api
  /** Read when a request is sent: operators replace keys while calls wait. */
  currentKey: () => string | undefined
  bucket: CapBucket
}

/**
 * @throws GatewayError for a call queued before the API was paused or switched off, or ahead of
 *   this worker's knowledge of a new key
 */
function checkOpen(api: Api, { providerKey }: Pick<CallJob, 'providerKey'>): void {
  if (!isOpen(api) || (!providerKey && !api.enabled)) throw new GatewayError('API_NOT_ENABLED')
  if (api.pausedMode === 'refuse') throw new GatewayError('API_PAUSED', { retryAfterMs: PAUSED_RETRY_MS })
}

function operatorKey(api: Api): UpstreamKey {
  return { api, currentKey: () => api.key, bucket: SHARED_BUCKET }
}

/** The key of the account's own that the job names. @throws GatewayError as `ProviderKeys.of` */
async function callerKey(
  { providerKeys }: { providerKeys: ProviderKeys },
  api: Api,
  { providerKey, accountId }: { providerKey: NonNullable<CallJob['providerKey']>; accountId: string },
): Promise<UpstreamKey> {
  const key = await providerKeys.of(providerKey.id, accountId)
  return { api: withCallerKey(api), currentKey: () => key, bucket: bucketOf({ providerKey }) }
}

function permitRequestOf(call: CallJob): PermitRequest {
  const { ticket, deadline, providerKey } = call
  // A follower has no place of its own: it joins when it needs a request of its own.
  const request: PermitRequest = {
    entry: queueEntry(call),
    deadline,
    tag: ticket?.isFollower ? undefined : ticket?.tag,
  }
  return providerKey?.isUnproven ? { ...request, ofShared: ofSharedCap(request) } : request
}

function queueEntry(call: CallJob): WaitQueueEntry {
  const { slug, ticket, weight = 1 } = call
  return { ...waitQueueIdentity(call), slug, bucket: bucketOf(call), weight: ticket?.weight ?? weight }
}

/**
 * The outcome at the deadline: 502 in an attempt or after a failed attempt, 503 in any other wait.
 */
function outcomeAtDeadline(progress: CallProgress): Failure {
  const { isUnderWay, lastFailure } = progress.ofRequest ?? progress
  if (isUnderWay) return { code: 'UPSTREAM_TIMEOUT' }
  return lastFailure ? attemptFailure(lastFailure) : { code: 'DEADLINE_EXCEEDED' }
}

/**
 * Leaves the wait queue when nothing can use the place any more: neither the work of the call after
 * its reply, nor a shared request that still runs in its place.
 */
function leaveWhenSettled(
  deps: RunDeps,
  known: KnownCall,
  { run, result }: { run: CallRun; result: CachedOutcome },
): CachedOutcome {
  const { times, progress, isSecondRun, signal } = run
  const leaveNow = (): void => {
    // A request to a fallback source leaves a place at the first source unused.
    const isPlaceUsed = times.attempts > 0 && known.api.fallback === undefined
    const mayHavePlace = (known.call.ticket !== undefined || isSecondRun) && !isPlaceUsed
    // A lost lock leaves it to the worker that has the job now.
    if (mayHavePlace && signal.reason !== LOCK_LOST) leaveInBackground(deps, known)
  }
  const leave = (): void => {
    if (progress.goesOn) progress.goesOn.then(leaveNow, leaveNow)
    else leaveNow()
  }
  const { afterwards } = result
  if (afterwards) return { ...result, afterwards: () => afterwards().finally(leave) }
  leave()
  return result
}

function leaveInBackground({ caps, log }: RunDeps, known: KnownCall): void {
  const { api, endpoint, call } = known
  const coalescedKey = cacheKeys(endpoint.endpoint, call)?.coalesced
  caps
    .of(api, bucketOf(call))
    .leaveWaitQueue({ ...queueEntry(call), coalescedKey })
    .catch((cause) => log.debug({ err: cause, callId: call.id }, 'failed to leave the wait queue'))
}

/**
 * Rewrites a failure for the owner of the key. If the upstream refused the key, it is validated
 * once more.
 */
function inTermsOfKey({ queues, log }: RunDeps, call: CallJob, result: CachedOutcome): CachedOutcome {
  const { outcome } = result
  const { providerKey } = call
  if (!providerKey || !isFailure(outcome)) return result
  if (providerKey.isUnproven && outcome.code === 'UPSTREAM_CAP_EXHAUSTED') {
    return { ...result, outcome: { ...outcome, message: UNPROVEN_KEYS_USED } }
  }
  if (outcome.code !== 'UPSTREAM_AUTH_FAILED') return result
  const group = call.group === undefined ? {} : { group: call.group }
  enqueueRevalidateKey(queues, call.slug, { v: 1, providerKeyId: providerKey.id, ...group }).catch((error) =>
    log.warn({ err: error, callId: call.id }, 'failed to queue the validation of a refused key'),
  )
  return { ...result, outcome: { code: 'PROVIDER_KEY_INVALID', cause: outcome.cause } }
}

function toOutcome(error: unknown): Outcome {
  const { code, message, details } = toGatewayError(error)
  const { retryAfterMs, cause } = details
  return { code, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }), cause: cause ?? error }
}
