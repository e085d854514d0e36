import { retryUntil } from '../../src/async/retry-until.ts'
import { endAsyncCall } from '../../src/calls/end-async-call.ts'
import { GatewayError, withCause } from '../../src/errors.ts'
import type { AnswerableCall } from '../../src/queue/call-job.ts'
import {
  type CallTimes,
  NO_BODY,
  NO_TIMES,
  type Reply,
  type ReplyHead,
  reachFields,
  reachOf,
} from '../../src/queue/reply-head.ts'
import type { Reach } from '../../src/queue/verdict.ts'
import { causeWords, publicCauseWords } from '../upstream/failure-words.ts'
import { isFailure, type Outcome } from '../upstream/outcome.ts'
import type { CallOutcome } from './cached-call.ts'
import { keepResult } from './keep-result.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** Pause between two tries to send a reply, milliseconds. */
const SEND_AGAIN_MS = 200

/**
 * How long a body may wait for room, milliseconds. Nodes read bodies within milliseconds, so if a
 * body waits longer, the bodies of a dead node take the room.
 */
const BODY_SPACE_MS_MAX = 2_000

interface TimedOutcome extends CallOutcome {
  times: CallTimes
  reach: Reach
  /** See `ReplyHead`. */
  room?: number
}

/**
 * Sends the reply of a call until Redis takes it or the deadline passes, so that an answer that the
 * upstream gave outlasts a failover. A second reply does no harm. A large body must find room among
 * the bodies of its account; a call whose body finds no room fails.
 *
 * @throws what the last try threw
 */
export async function sendOutcome(deps: WorkerDeps, call: AnswerableCall, result: TimedOutcome): Promise<void> {
  const { clock, log, replies } = deps
  let reply = toReply(deps, call, result)
  const fitsBy = performance.now() + BODY_SPACE_MS_MAX
  await retryUntil(() => (call.isAsync ? sendKept(deps, call, reply) : replies.send(call, reply)), {
    everyMs: SEND_AGAIN_MS,
    forMs: Math.max(call.deadline - clock.now(), 2 * BODY_SPACE_MS_MAX),
    mayRepeat: (error) => {
      const isWithoutRoom = error instanceof GatewayError && !call.isAsync
      if (isProgrammingError(error) || (!isWithoutRoom && clock.now() >= call.deadline)) return false
      log.debug({ err: error, callId: call.id }, 'failed to send the answer of a call; trying again')
      if (isWithoutRoom && performance.now() >= fitsBy) reply = withoutBody(reply, error)
      return true
    },
  })
}

/**
 * Stores the outcome of an asynchronous call, then announces what is stored. That may be the
 * outcome of another run; the reach is always of this run.
 */
async function sendKept(deps: WorkerDeps, call: AnswerableCall, outcome: Reply): Promise<void> {
  const { head, body } = await keepResult(deps, call, outcome)
  const reply = (announcement: Reply) => deps.replies.send(call, announcement)
  const { times } = outcome.head
  await endAsyncCall(deps, call, { head, reach: reachOf(outcome.head), times, bytes: body.length, reply })
}

/** The failure in place of a reply whose body found no room among the bodies of its account. */
function withoutBody({ head }: Reply, { code, details }: GatewayError): Reply {
  const words = { cause: causeWords(code, details.cause), retryAfterMs: details.retryAfterMs ?? 0 }
  return { head: { id: head.id, times: head.times, code, ...reachFields(reachOf(head)), ...words }, body: NO_BODY }
}

function toReply({ log }: WorkerDeps, call: AnswerableCall, result: TimedOutcome): Reply {
  const { id, slug } = call
  const { outcome, cacheStatus, ageSeconds, freshMs, times, reach, room } = result
  const head: ReplyHead = {
    id,
    times,
    ...reachFields(reach),
    cacheStatus,
    ageSeconds,
    freshMs,
    room: room || undefined,
  }
  if (!isFailure(outcome)) {
    const { body, recordedFor, example, isFromFallback } = outcome
    return { head: { ...head, recordedFor, example, isFromFallback }, body }
  }
  const { cause, reach: _reach, isCutShort: _isCutShort, ...failure } = outcome
  // The API node logs the cause in words. Only an unexpected error needs its stack here.
  const level = failure.code === 'INTERNAL_ERROR' ? 'error' : 'debug'
  if (cause) log[level]({ callId: id, slug, code: failure.code, err: cause }, 'call failed')
  if (!cause) return { head: { ...head, ...failure }, body: NO_BODY }
  const { code, message = withCause(code, publicCauseWords(code, cause)) } = failure
  return { head: { ...head, ...failure, message, cause: causeWords(code, cause) }, body: NO_BODY }
}

/**
 * This worker has loaded another document of the API than the node that admitted the call, so it
 * sent nothing.
 */
export class OtherDocumentError extends Error {}

/** Retry-After, milliseconds. The processes have restarted by then. */
const OTHER_DOCUMENT_RETRY_MS = 10_000

/**
 * Answers a call whose job outlived too many workers, or by a document that this worker has not
 * loaded, or whose reply Redis did not take.
 *
 * @param isSecondRun whether an earlier worker died while it ran the call
 */
export async function replyToLostCall(
  deps: WorkerDeps,
  call: AnswerableCall,
  { cause, isSecondRun }: { cause: Error; isSecondRun: boolean },
): Promise<void> {
  // Otherwise a request may have been sent.
  const isUntouched = cause instanceof OtherDocumentError && !isSecondRun
  const mustNotRepeat = !isUntouched && deps.catalog.mustNotRepeat(call)
  const outcome: Outcome = mustNotRepeat ? { code: 'OUTCOME_UNKNOWN', cause } : outcomeOfLost(cause)
  await sendOutcome(deps, call, { outcome, times: NO_TIMES, reach: isUntouched ? 'unsent' : 'maybe-sent' })
}

/** The outcome of a lost call that its caller may send again. */
function outcomeOfLost(cause: Error): Outcome {
  if (cause instanceof OtherDocumentError)
    return { code: 'API_NOT_ENABLED', retryAfterMs: OTHER_DOCUMENT_RETRY_MS, cause }
  return { code: isProgrammingError(cause) ? 'INTERNAL_ERROR' : 'DEPENDENCY_UNAVAILABLE', cause }
}

/** Whether a defect of the gateway is the cause, and not the failure of Redis or of a process. */
function isProgrammingError(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind)
}
