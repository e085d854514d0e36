import { retryUntil } from '../../src/async/retry-until.ts'
import { endAsyncCall } from '../../src/calls/end-call.ts'
import { bucketOf } from '../../src/caps/bucket.ts'
import { GatewayError } from '../../src/errors.ts'
import type { AnswerableCall, CallJob } from '../../src/queue/call-job.ts'
import type { ReplyOutbox } from '../../src/queue/reply.ts'
import { isInline } from '../../src/queue/reply-body.ts'
import { type CallTimes, type Reply, type ReplyHead, reachMembers, reachOf } from '../../src/queue/reply-head.ts'
import { furthest, type Reach } from '../../src/queue/verdict.ts'
import type { CallLogWriter } from '../../src/telemetry/call-log-writer.ts'
import type { CachedOutcome } from '../cache/cached-call.ts'
import type { PermitClient } from '../permits/permit-client.ts'
import { DEADLINE_PASSED, LOCK_LOST } from '../upstream/call-end.ts'
import { causeWords } from '../upstream/failure-words.ts'
import { isFailure, type Outcome } from '../upstream/outcome.ts'
import type { CallProgress } from '../upstream/send-once.ts'
import { deliver, isProgrammingError } from './deliver.ts'
import { type KeepDeps, keepResult } from './keep-result.ts'
import { type RunDeps, runCall } from './run-call.ts'
import type { RunningCalls } from './running-calls.ts'
import { traceCall } from './trace-call.ts'

export interface ProcessorDeps extends RunDeps, KeepDeps {
  replies: ReplyOutbox
  running: RunningCalls
  callLog: Pick<CallLogWriter, 'write'>
}

export interface QueuedRun {
  call: CallJob
  /** An earlier worker was lost while it ran this call. */
  isSecondRun: boolean
}

const NO_BODY = Buffer.alloc(0)

/**
 * Runs one call of a job. It may run twice: the node drops a second reply, and an endpoint that is
 * not idempotent is not called again. Every way out but a lost lock sends a reply.
 * @returns null: a return value would be kept in Redis
 */
export async function processCall(deps: ProcessorDeps, run: QueuedRun, cancelled: AbortSignal): Promise<null> {
  const { call } = run
  if (call.traceparent === undefined) return await runAndReply(deps, run, cancelled)
  return await traceCall(deps.telemetry, call, (traced) => runAndReply(deps, { ...run, call: traced }, cancelled))
}

async function runAndReply(
  deps: ProcessorDeps,
  { call, isSecondRun }: QueuedRun,
  cancelled: AbortSignal,
): Promise<null> {
  const { clock } = deps
  const times: CallTimes = {
    queueMs: Math.max(0, clock.now() - (call.admissionEndedAt ?? call.limitsAcquiredAt)),
    permitMs: 0,
    upstreamMs: 0,
    attempts: 0,
  }
  const { signal, dispose } = deadlineSignal(deps, call, cancelled)
  const remainingMs = (): number => call.deadline - clock.now()
  try {
    const progress: CallProgress = { reach: 'unsent' }
    const result = await runCall(deps, call, { times, progress, isSecondRun, remainingMs, signal })
    if (cancelled.reason === LOCK_LOST) throw new Error(LOCK_LOST)
    await deliver(remainingMs(), deps.log, () =>
      sendOutcome(deps, call, { ...result, times, reach: reachIn(call, { result, progress, isSecondRun }) }),
    )
    await result
      .afterwards?.()
      .catch((error) =>
        deps.log.debug({ err: error, callId: call.id }, 'failed to revalidate a stale answer in the background'),
      )
    return null
  } finally {
    dispose()
  }
}

/**
 * One controller and one timer: AbortSignal.timeout() and any() cost several times as much on every
 * call.
 */
function deadlineSignal(
  { clock, running }: ProcessorDeps,
  { id, deadline }: CallJob,
  cancelled: AbortSignal,
): { signal: AbortSignal; dispose: () => void } {
  const end = new AbortController()
  const onCancelled = (): void => end.abort(cancelled.reason)
  const timer = setTimeout(() => end.abort(DEADLINE_PASSED), Math.max(0, Math.ceil(deadline - clock.now())))
  cancelled.addEventListener('abort', onCancelled, { once: true })
  if (cancelled.aborted) onCancelled()
  const unfollow = running.follow(id, (reason) => end.abort(reason))
  return {
    signal: end.signal,
    dispose: () => {
      clearTimeout(timer)
      cancelled.removeEventListener('abort', onCancelled)
      unfollow()
    },
  }
}

/**
 * No worker took the call, because each has loaded another document of the API than its API node.
 * Nothing was sent.
 */
export class OtherDocumentError extends Error {}

/** By then the processes have been restarted, milliseconds. */
const OTHER_DOCUMENT_RETRY_MS = 10_000

/**
 * The job outlived too many workers, or Redis did not take the reply: a request may have been sent.
 */
export async function replyToLostCall(deps: ProcessorDeps, call: AnswerableCall, cause: Error): Promise<void> {
  const times: CallTimes = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const isOnce = deps.catalog.get(call.slug)?.endpoints.get(call.endpoint)?.endpoint.effect === 'once'
  const code = isProgrammingError(cause) ? 'INTERNAL_ERROR' : 'DEPENDENCY_UNAVAILABLE'
  const isUntouched = cause instanceof OtherDocumentError
  const outcome: Outcome = isUntouched
    ? { code: 'API_NOT_ENABLED', retryAfterMs: OTHER_DOCUMENT_RETRY_MS, cause }
    : { code: isOnce ? 'OUTCOME_UNKNOWN' : code, cause }
  await deliver(call.deadline - deps.clock.now(), deps.log, () =>
    sendOutcome(deps, call, { outcome, times, reach: isUntouched ? 'unsent' : 'maybe-sent' }),
  )
}

type TimedOutcome = CachedOutcome & { times: CallTimes; reach: Reach }

function sendOutcome(deps: ProcessorDeps, call: AnswerableCall, result: TimedOutcome): Promise<void> {
  const reply = toReply(deps, call, result)
  if (call.isAsync) return sendKept(deps, call, reply)
  return isInline(reply.body) ? deps.replies.send(call, reply) : sendWhenBodyFits(deps, call, reply)
}

/**
 * An asynchronous call's outcome is stored first. Another outcome may be kept, but this run knows
 * how far it got itself.
 */
async function sendKept(deps: ProcessorDeps, call: AnswerableCall, outcome: Reply): Promise<void> {
  const { head } = await keepResult(deps, call, outcome)
  const reply = (announcement: Reply) => deps.replies.send(call, announcement)
  const { times } = outcome.head
  const bytes = outcome.body.length
  await endAsyncCall(deps, call, { head, reach: reachOf(outcome.head), times, bytes, reply })
}

/**
 * Nodes take bodies within milliseconds: a body that finds no room for this long is kept out by the
 * bodies of a dead node. Milliseconds.
 */
const BODY_SPACE_RETRY = { everyMs: 200, forMs: 2_000, mayRepeat: (error: unknown) => error instanceof GatewayError }

async function sendWhenBodyFits({ replies }: ProcessorDeps, call: AnswerableCall, reply: Reply): Promise<void> {
  try {
    await retryUntil(() => replies.send(call, reply), BODY_SPACE_RETRY)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { code, details } = error
    const { id, times } = reply.head
    const words = { cause: causeWords(code, details.cause), retryAfterMs: details.retryAfterMs ?? 0 }
    await replies.send(call, {
      head: { id, times, code, ...reachMembers(reachOf(reply.head)), ...words },
      body: NO_BODY,
    })
  }
}

function toReply({ log, permitClientOf }: ProcessorDeps, call: AnswerableCall, result: TimedOutcome): Reply {
  const { id, slug } = call
  const { outcome, cacheStatus, ageSeconds, freshMs, times, reach } = result
  const head: ReplyHead = {
    id,
    times,
    ...reachMembers(reach),
    ...(cacheStatus === undefined ? {} : { cacheStatus }),
    ...(ageSeconds === undefined ? {} : { ageSeconds }),
    ...(freshMs === undefined ? {} : { freshMs }),
    ...(times.attempts === 0 ? {} : roomOf(permitClientOf(call, bucketOf(call)))),
  }
  if (!isFailure(outcome)) {
    const { body, recordedFor, isFromFallback } = outcome
    const ofBody = { ...(recordedFor === undefined ? {} : { recordedFor }), ...(isFromFallback && { isFromFallback }) }
    return { head: { ...head, ...ofBody }, body }
  }
  const { cause, reach: _reach, isCutShort: _isCutShort, ...failure } = outcome
  // The API node logs the cause in words; only an unforeseen error needs its stack.
  const level = failure.code === 'INTERNAL_ERROR' ? 'error' : 'debug'
  if (cause) log[level]({ callId: id, slug, code: failure.code, err: cause }, 'call failed')
  const words = cause ? { cause: causeWords(failure.code, cause) } : {}
  return { head: { ...head, ...failure, ...words }, body: NO_BODY }
}

/** How far a run got. The earlier run may have sent a request, however this run ends. */
function reachIn(
  { isAsync }: CallJob,
  { result, progress, isSecondRun }: { result: CachedOutcome; progress: CallProgress; isSecondRun: boolean },
): Reach {
  const { outcome } = result
  const own = (progress.ofRequest ?? progress).reach
  const reach = (isFailure(outcome) ? outcome.reach : undefined) ?? own
  if (isSecondRun) return furthest(reach, 'maybe-sent')
  // An asynchronous call was accepted, and may have waited for minutes: its unit of the minute
  // stays spent.
  return isAsync ? furthest(reach, 'unsent') : reach
}

function roomOf({ room }: PermitClient): Pick<ReplyHead, 'room'> {
  return room === 0 ? {} : { room }
}
