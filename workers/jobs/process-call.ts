import { retryUntil } from '../../src/async/retry-until.ts'
import { ERRORS } from '../../src/errors.ts'
import { monthOf, releaseLimits } from '../../src/limits/account-limits.ts'
import { CALLER_LEFT_STATUS } from '../../src/limits/settlement-batcher.ts'
import { recordUsage } from '../../src/limits/usage-ledger.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { CallTimes, Reply, ReplyHead } from '../../src/queue/frame.ts'
import type { ReplyOutbox } from '../../src/queue/reply.ts'
import type { CachedOutcome } from '../cache/cached-call.ts'
import { DEADLINE_PASSED, LOCK_LOST } from '../upstream/call-end.ts'
import { causeWords } from '../upstream/failure-words.ts'
import { isFailure, type Outcome } from '../upstream/outcome.ts'
import { deliver, isMistake } from './deliver.ts'
import { type KeepDeps, keepResult } from './keep-result.ts'
import { type RunDeps, runCall } from './run-call.ts'
import type { RunningCalls } from './running-calls.ts'
import { traceCall } from './trace-call.ts'

export interface ProcessorDeps extends RunDeps, KeepDeps {
  replies: ReplyOutbox
  running: RunningCalls
}

/** One run of a call. */
export interface QueuedRun {
  call: CallJob
  /** A worker was lost with the call before. */
  isSecondRun: boolean
}

/** How usage is written while Redis takes no writes. */
const COUNT_AGAIN = { mayRepeat: () => true, everyMs: 250, forMs: 30_000 }

const NO_BODY = Buffer.alloc(0)

/**
 * Runs one call of a job: deadline, cache, permit, attempts, reply. Assume that it runs twice: a reply too many is dropped
 * by its node, and an endpoint that is not idempotent is not called again. Every way out sends a reply, but for a lost
 * lock.
 *
 * @returns null: a return value would be kept in Redis
 */
export async function processCall(
  deps: ProcessorDeps,
  { call, isSecondRun }: QueuedRun,
  cancelled: AbortSignal,
): Promise<null> {
  return await traceCall(deps.telemetry, call, async (tracedCall) => {
    const { clock } = deps
    const times: CallTimes = {
      queueMs: Math.max(0, clock.now() - call.enqueuedAt),
      permitMs: 0,
      upstreamMs: 0,
      attempts: 0,
    }
    const { signal, dispose } = endOf(deps, call, cancelled)
    const remainingMs = (): number => call.deadline - clock.now()
    try {
      const result = await runCall(deps, tracedCall, { times, progress: {}, isSecondRun, remainingMs, signal })
      if (cancelled.reason === LOCK_LOST) throw new Error(LOCK_LOST)
      await deliver(remainingMs(), deps.log, () => answer(deps, call, { ...result, times }))
      // What was served stale is refreshed now; nobody waits for it, and the next call sees whether it went well.
      await result
        .afterwards?.()
        .catch((error) => deps.log.debug({ err: error, callId: call.id }, 'background revalidation failed'))
      return null
    } finally {
      dispose()
    }
  })
}

/**
 * The call's end: its deadline, its caller leaving, or its job being cancelled. One controller and one timer:
 * AbortSignal.timeout() and any() cost several times as much, on every call.
 */
function endOf(
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

/** Answers a call whose job failed without a reply: it outlived too many workers, or Redis did not take its answer. */
export async function answerLost(deps: ProcessorDeps, call: CallJob, cause: Error): Promise<void> {
  const times: CallTimes = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const outcome: Outcome = { code: isMistake(cause) ? 'INTERNAL_ERROR' : 'DEPENDENCY_UNAVAILABLE', cause }
  await deliver(call.deadline - deps.clock.now(), deps.log, () => answer(deps, call, { outcome, times }))
}

async function answer(
  deps: ProcessorDeps,
  call: CallJob,
  { outcome, cacheStatus, ageSeconds, times }: CachedOutcome & { times: CallTimes },
): Promise<void> {
  const { log } = deps
  const head: ReplyHead = {
    id: call.id,
    times,
    ...(cacheStatus === undefined ? {} : { cacheStatus }),
    ...(ageSeconds === undefined ? {} : { ageSeconds }),
  }
  let body: Buffer = NO_BODY
  if (isFailure(outcome)) {
    const { cause, ...told } = outcome
    // The API node's line on the call says so; only what nobody foresaw needs its stack.
    const level = told.code === 'INTERNAL_ERROR' ? 'error' : 'debug'
    if (cause) log[level]({ callId: call.id, slug: call.slug, code: told.code, err: cause }, 'call failed')
    Object.assign(head, told, cause ? { cause: causeWords(told.code, cause) } : {})
  } else {
    body = outcome.body
  }
  if (!call.isAsync) return await deps.replies.send(call, { head, body })
  const kept = await keepResult(deps, call, { head, body })
  await settle(deps, call, kept.head)
  const word: Reply = { head: { id: call.id, times, storedFor: call.accountId }, body: NO_BODY }
  await deps.replies.send(call, word)
}

/** Ends an asynchronous call: its caller may be gone, so its worker gives back its lease and counts it. */
async function settle({ redis, log }: ProcessorDeps, call: CallJob, head: ReplyHead): Promise<void> {
  const status = settledStatus(head)
  const ended = { month: monthOf(call.enqueuedAt).name, ended: [{ callId: call.id, status }] }
  if ((await releaseLimits(redis, call, ended)) !== 1) return
  // A second delivery would find nothing to release, and count nothing.
  await retryUntil(() => recordUsage(redis, [{ call, status }], call.id), COUNT_AGAIN)
  const { id: callId, accountId: account, slug, endpoint, mode } = call
  const { code, times } = head
  log.info({ callId, account, slug, endpoint, mode, status, code, ...times }, 'asynchronous call ended')
}

function settledStatus({ code }: ReplyHead): number {
  if (code === 'CALL_CANCELLED') return CALLER_LEFT_STATUS
  return code ? ERRORS[code].status : 200
}
