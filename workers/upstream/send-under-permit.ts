import { REPLY_MS } from '../../src/caps/timing.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import type { ResponseClass } from '../../src/catalog/response-class.ts'
import type { CallTimes } from '../../src/queue/reply-head.ts'
import { furthestReach, hasReached } from '../../src/queue/verdict.ts'
import { SHARED_BUCKET, UNPROVEN_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import {
  AttemptError,
  EndedUnsentError,
  reachOfFailed,
  StalePermitError,
  UnsentError,
} from '../errors/attempt-error.ts'
import type { PermitRequest } from '../permits/local-waiters.ts'
import type { Permit } from '../permits/permits-in-use.ts'
import type { MemoryShare } from './answer-memory.ts'
import { attempt, type HttpExchange } from './attempt.ts'
import { classifyResponse } from './interpret.ts'
import type { CallProgress } from './outcome.ts'
import type { AttemptRecorder } from './record-attempt.ts'
import { followReportedLimit } from './reported-limit.ts'
import type { UpstreamDeps } from './upstream-deps.ts'
import type { WireRequest } from './upstream-request.ts'

const ATTEMPT_TIMEOUT_MS = 10_000

export interface Sending {
  api: Api
  endpoint: Endpoint | undefined
  /** Read when a request is sent: operators replace keys while calls wait. */
  currentKey: () => string | undefined
  permitRequest: PermitRequest
  /**
   * Whether the API may still be called, and by this caller. Checked when the permit is there,
   * because a call may have waited long for it. Cancels a call whose caller may no longer make it.
   *
   * @throws GatewayError if the API was paused or switched off meanwhile
   */
  ensureCallable?: (permit: Permit) => Promise<void>
  /**
   * Last check before the request is sent, if another call may make the request needless. If it
   * throws, the permit is given back.
   */
  ensureNeeded?: (permit: Permit) => Promise<void>
  /** Longest time of an attempt, milliseconds. Default: the longest time of any call. */
  attemptTimeoutMsMax?: number
  /** Ends only the wait for a permit. */
  waitSignal?: AbortSignal
  times: RunTimes
  progress: CallProgress
  remainingMs: () => number
  signal: AbortSignal
  recorder: AttemptRecorder
  memory?: MemoryShare
}

/** The times of a call while it runs. */
export interface RunTimes extends CallTimes {
  /** Since when it waits for a permit, by the monotonic clock; undefined if it does not wait. */
  waitsSince?: number | undefined
}

export interface ClassifiedExchange extends HttpExchange {
  /** Undefined if the answer is to be mapped. */
  responseClass: ResponseClass | undefined
}

/**
 * Sends one request under a permit, and ends the permit. The breaker may refuse the request before
 * the wait for the permit, during the wait, and after. `buildRequest` is called when the permit is
 * there.
 *
 * @throws AttemptError, GatewayError as `ensureCallable`, or the signal's reason
 */
export async function sendUnderPermit(
  deps: UpstreamDeps,
  sending: Sending,
  buildRequest: () => WireRequest,
): Promise<ClassifiedExchange> {
  // Repeats only if the connection took longer than a permit lasts: it is ready now.
  while (true) {
    const permit = await acquirePermit(deps, sending)
    try {
      return await sendWith(permit, { deps, sending, buildRequest })
    } catch (error) {
      if (!(error instanceof StalePermitError)) throw error
      await sending.recorder.counting
    }
  }
}

/** @throws StalePermitError, or as `sendUnderPermit` */
async function sendWith(
  permit: Permit,
  { deps, sending, buildRequest }: { deps: UpstreamDeps; sending: Sending; buildRequest: () => WireRequest },
): Promise<ClassifiedExchange> {
  const { api, endpoint, permitRequest, progress, signal, recorder, memory } = sending
  let request: WireRequest
  try {
    await sending.ensureCallable?.(permit)
    await sending.ensureNeeded?.(permit)
    signal.throwIfAborted()
    request = buildRequest()
    // The failure before a repeat may have opened the breaker.
    await recorder.counting
    await recorder.gate.enter()
  } catch (error) {
    permit.giveBack()
    if (!signal.aborted) progress.isUnderWay = false
    throw error
  }
  const startedAt = performance.now()
  const fullMs = attemptTimeoutMs(deps, sending)
  const timeoutMs = Math.min(fullMs, Math.max(1, sending.remainingMs() - REPLY_MS))
  try {
    recorder.begin(request)
    progress.isUnderWay = !signal.aborted
    const client = deps.clientOf(api, permitRequest.bucket)
    const exchange = await attempt(api, request, { client, permit, progress, signal, timeoutMs, memory })
    const hasKey = request.key !== undefined
    const sent = { upstream: api.upstream, endpoint, hasUndeclared: !recorder.request.isPlain, hasKey }
    const result = { ...exchange, responseClass: classifyResponse(sent, exchange.answer) }
    recorder.end(exchange.answer.status, result.responseClass?.code)
    const tookMs = performance.now() - startedAt
    // Before the permit ends: the next request must find the cap as the upstream reported it.
    if (result.responseClass || api.upstream.rateHeaders)
      await followReportedLimit(deps, sending, { request, result, observedBy: permit.id })
    countAttempt(sending.times, tookMs)
    permit.release(tookMs)
    return result
  } catch (error) {
    recorder.fail(error)
    const reach = reachOfFailed(error)
    progress.reach = furthestReach(progress.reach, reach)
    const tookMs = performance.now() - startedAt
    if (!(error instanceof UnsentError)) countAttempt(sending.times, tookMs)
    // An attempt without a connection takes nothing of the cap.
    if (hasReached(reach, 'maybe-sent')) permit.release(tookMs)
    else permit.giveBack()
    if (error instanceof EndedUnsentError) throw error.cause
    if (error instanceof AttemptError && error.code === 'UPSTREAM_TIMEOUT') error.isCutShort = timeoutMs < fullMs
    throw error
  } finally {
    if (!signal.aborted) progress.isUnderWay = false
  }
}

/**
 * A request with an unproven key needs a permit of the shared cap as well, because the upstream may
 * count it for the gateway's address. It has a place of its own there, in the same share.
 *
 * @throws as `PermitClient.acquire`
 */
async function acquirePermit(deps: UpstreamDeps, sending: Sending): Promise<Permit> {
  const { api, permitRequest, times, remainingMs, waitSignal, recorder } = sending
  const { bucket } = permitRequest
  const signal = waitSignal ? AbortSignal.any([sending.signal, waitSignal]) : sending.signal
  const wait = { remainingMs, signal, refusal: recorder.gate.refusal }
  times.waitsSince = performance.now()
  try {
    const permit = await deps.permitClientOf(api, bucket).acquire(permitRequest, wait)
    if (bucket !== UNPROVEN_BUCKET) return permit
    try {
      const ofShared = { ...permitRequest, bucket: SHARED_BUCKET, coalescedKey: undefined, tag: undefined }
      return bothOf(await deps.permitClientOf(api, SHARED_BUCKET).acquire(ofShared, wait), permit)
    } catch (error) {
      permit.giveBack()
      throw error
    }
  } finally {
    endPermitWait(times)
  }
}

/**
 * Adds the wait that is under way to the times. The wait of a call ends with the call at the
 * latest: the request that it shares may wait longer.
 */
export function endPermitWait(times: RunTimes): void {
  if (times.waitsSince !== undefined) times.permitMs += performance.now() - times.waitsSince
  times.waitsSince = undefined
}

/**
 * The upstream sees the request under the first of the permits; the second bounds how many of its
 * kind there are.
 */
function bothOf(first: Permit, second: Permit): Permit {
  return {
    ...first,
    hasWaited: first.hasWaited || second.hasWaited,
    release: (tookMs) => {
      first.release(tookMs)
      second.release(tookMs)
    },
    giveBack: () => {
      first.giveBack()
      second.giveBack()
    },
  }
}

function countAttempt(times: CallTimes, tookMs: number): void {
  times.attempts += 1
  times.upstreamMs += tookMs
}

/** Of one attempt, milliseconds. */
export function attemptTimeoutMs(
  deps: Pick<UpstreamDeps, 'attemptTimeoutMsMax'>,
  { api, attemptTimeoutMsMax = deps.attemptTimeoutMsMax }: Pick<Sending, 'api' | 'attemptTimeoutMsMax'>,
): number {
  return Math.min(api.upstream.attemptTimeoutMs ?? ATTEMPT_TIMEOUT_MS, attemptTimeoutMsMax)
}
