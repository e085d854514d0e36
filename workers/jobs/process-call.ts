import type { Job } from 'bullmq'
import { retryUntil } from '../../src/async/retry-until.ts'
import { ERRORS } from '../../src/errors.ts'
import { monthOf, releaseLimits } from '../../src/limits/account-limits.ts'
import { CALLER_LEFT_STATUS } from '../../src/limits/settlement-batcher.ts'
import { recordUsage } from '../../src/limits/usage-ledger.ts'
import { type CallJob, parseCallJob } from '../../src/queue/call-job.ts'
import type { CallTimes, ReplyHead } from '../../src/queue/frame.ts'
import { RESULT_BYTES_MAX, readResult, sendReply, storeResult } from '../../src/queue/reply.ts'
import { wasRefused } from '../../src/redis/unavailable.ts'
import type { CachedOutcome } from '../cache/cached-call.ts'
import { DEADLINE_PASSED, LOCK_LOST } from '../upstream/call-end.ts'
import { causeWords } from '../upstream/failure-words.ts'
import { isFailure, type Outcome } from '../upstream/outcome.ts'
import { deliver, isMistake } from './deliver.ts'
import { type RunDeps, runCall } from './run-call.ts'

export type ProcessorDeps = RunDeps

/** How usage is written while Redis takes no writes. */
const COUNT_AGAIN = { mayRepeat: wasRefused, everyMs: 250, forMs: 30_000 }

const NO_BODY = Buffer.alloc(0)

/**
 * Runs one job: deadline, cache, permit, attempts, reply. Assume that it runs twice: a reply too many is dropped by its
 * node, and an endpoint that is not idempotent is not called again. Every way out sends a reply, but for a lost lock.
 *
 * @returns null: a return value would be kept in Redis
 */
export async function processCall(sources: ProcessorDeps, job: Job, cancelled: AbortSignal): Promise<null> {
  const call = parseCallJob(job.data)
  const { clock } = sources
  const times: CallTimes = {
    queueMs: Math.max(0, clock.now() - call.enqueuedAt),
    permitMs: 0,
    upstreamMs: 0,
    attempts: 0,
  }
  const { signal, dispose } = endOf(call.deadline - clock.now(), cancelled)
  const isSecondRun = job.stalledCounter > 0
  const remainingMs = (): number => call.deadline - clock.now()
  try {
    const result = await runCall(sources, call, { times, progress: {}, isSecondRun, remainingMs, signal })
    if (cancelled.reason === LOCK_LOST) throw new Error(LOCK_LOST)
    await deliver(remainingMs(), sources.log, () => answer(sources, call, times, result))
    // What was served stale is refreshed now; nobody waits for it, and the next call sees whether it went well.
    await result
      .afterwards?.()
      .catch((error) => sources.log.debug({ err: error, callId: call.id }, 'answer not refreshed'))
    return null
  } finally {
    dispose()
  }
}

/**
 * The call's end, at its deadline or when it is cancelled. One controller and one timer: AbortSignal.timeout() and
 * any() cost several times as much, on every call.
 */
function endOf(remainingMs: number, cancelled: AbortSignal): { signal: AbortSignal; dispose: () => void } {
  const end = new AbortController()
  const onCancelled = (): void => end.abort(cancelled.reason)
  const timer = setTimeout(() => end.abort(DEADLINE_PASSED), Math.max(0, Math.ceil(remainingMs)))
  cancelled.addEventListener('abort', onCancelled, { once: true })
  if (cancelled.aborted) onCancelled()
  return {
    signal: end.signal,
    dispose: () => {
      clearTimeout(timer)
      cancelled.removeEventListener('abort', onCancelled)
    },
  }
}

/** Answers a call whose job failed without a reply: it outlived too many workers, or Redis did not take its answer. */
export async function answerLost(sources: ProcessorDeps, job: Job, cause: Error): Promise<void> {
  const call = parseCallJob(job.data)
  const times: CallTimes = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const outcome: Outcome = { code: isMistake(cause) ? 'INTERNAL_ERROR' : 'DEPENDENCY_UNAVAILABLE', cause }
  await deliver(call.deadline - sources.clock.now(), sources.log, () => answer(sources, call, times, { outcome }))
}

async function answer(sources: ProcessorDeps, call: CallJob, times: CallTimes, result: CachedOutcome): Promise<void> {
  const { redis, log } = sources
  const { outcome, cacheStatus, ageSeconds } = result
  let head: ReplyHead = {
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
  if (call.isAsync) {
    if (body.length > RESULT_BYTES_MAX) {
      head.code = 'UPSTREAM_TOO_LARGE'
      body = NO_BODY
    }
    // The job may run twice: what the first run kept is what the caller is told, and what is counted.
    const isStored = await storeResult(redis, head, body)
    const earlier = isStored ? undefined : await readResult(redis, call.id)
    if (earlier) ({ head, body } = earlier)
    const status = settledStatus(head)
    const ended = { month: monthOf(call.enqueuedAt).name, ended: [{ callId: call.id, status }] }
    if ((await releaseLimits(redis, call, ended)) === 1) {
      // A second delivery would find nothing to release, and count nothing.
      await retryUntil(() => recordUsage(redis, [{ call, status }]), COUNT_AGAIN)
      const { id: callId, accountId: account, slug, endpoint, mode } = call
      log.info({ callId, account, slug, endpoint, mode, status, code: head.code, ...times }, 'asynchronous call ended')
    }
  }
  if (call.isAsync) await sendReply(redis, call.replyTo, { id: call.id, times, isStored: true }, NO_BODY)
  else await sendReply(redis, call.replyTo, head, body)
}

function settledStatus({ code }: ReplyHead): number {
  if (code === 'CALL_CANCELLED') return CALLER_LEFT_STATUS
  return code ? ERRORS[code].status : 200
}
