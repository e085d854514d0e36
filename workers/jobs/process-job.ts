import { DelayedError, type Job, type Processor } from 'bullmq'
import { ERRORS } from '../../src/errors.ts'
import { isInFlight } from '../../src/limits/end-calls.ts'
import {
  type AnswerableCall,
  type CallJob,
  LaterVersionError,
  parseAnswerable,
  parseCalls,
} from '../../src/queue/call-job.ts'
import { PROBE_JOB } from '../../src/queue/probe-job.ts'
import { NO_TIMES } from '../../src/queue/reply-head.ts'
import { VALIDATE_KEY } from '../../src/queue/validate-key-job.ts'
import { furthestReach, type Reach } from '../../src/queue/verdict.ts'
import { bucketOf } from '../../src/queue/wait-queue-entry.ts'
import { startProcessSpan } from '../../src/telemetry/spans.ts'
import { LOCK_LOST } from '../errors/abort-reasons.ts'
import { type CallProgress, isFailure, progressOf } from '../upstream/outcome.ts'
import type { CallOutcome } from './cached-call.ts'
import { callerOf } from './present-rights.ts'
import { processProbe } from './process-probe.ts'
import { leavePlace, runCall } from './run-call.ts'
import { OtherDocumentError, replyToLostCall, sendOutcome } from './send-outcome.ts'
import { validateKey } from './validate-key.ts'
import type { WorkerDeps } from './worker-deps.ts'

/**
 * If a job's first call is older than this, the worker checks which callers have left.
 * Milliseconds.
 */
const WAITED_MS = 1_000

/**
 * How often a job of a later version, or by another document, is left to another worker, and for
 * how long each time, milliseconds.
 */
const HANDED_BACK_MAX = 8
const HAND_BACK_MS = 250

/**
 * How a worker processes its jobs. The processor returns null, because BullMQ keeps what it returns
 * in Redis.
 */
export function processorOf(deps: WorkerDeps): Processor {
  // Three named parameters without defaults: by their number BullMQ tells whether a signal is
  // wanted.
  return async (job, _token, signal) => {
    const run = job.name === PROBE_JOB ? processProbe : job.name === VALIDATE_KEY ? validateKey : processCallJob
    deps.running.jobs += 1
    try {
      return await run(deps, job, signal ?? new AbortController().signal)
    } finally {
      deps.running.jobs -= 1
    }
  }
}

/**
 * Runs the calls of a job independently; a job that runs again leaves out answered calls.
 *
 * @returns null, because BullMQ keeps what a processor returns in Redis
 * @throws what a call threw
 */
export async function processCallJob(deps: WorkerDeps, job: Job, cancelled: AbortSignal): Promise<null> {
  const isSecondRun = wasLost(job)
  const { queueName: lane } = job
  const all = await readCalls(deps, job)
  const hasWaited = deps.clock.now() - (all[0]?.limitsAcquiredAt ?? 0) > WAITED_MS
  const calls = isSecondRun || hasWaited ? await withoutEndedCalls(deps, all) : all
  for (const call of all) if (!calls.includes(call)) void leavePlace(deps, call)
  const run = deps.telemetry.tracing ? processTraced : processCall
  const processing = calls.map((call) => run(deps, { call, lane, isSecondRun }, cancelled))
  const results = await Promise.allSettled(processing)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
  return null
}

/**
 * An API node checks what a document allows. A worker that has not loaded the document would send
 * something else.
 *
 * @throws DelayedError if another worker may be able to run the job, or this worker in a moment;
 *   Error if nobody can read it
 */
async function readCalls({ catalog }: WorkerDeps, job: Job): Promise<CallJob[]> {
  try {
    const calls = parseCalls(job.data)
    const other = calls.find((call) => call.document !== undefined && !catalog.checkedBy(call))
    if (other) throw new OtherDocumentError(`this worker has not loaded the document by which ${other.slug} was called`)
    return calls
  } catch (error) {
    const mayBeOfAnother = error instanceof LaterVersionError || error instanceof OtherDocumentError
    if (!mayBeOfAnother || job.attemptsStarted > HANDED_BACK_MAX) throw error
    await job.moveToDelayed(Date.now() + HAND_BACK_MS, job.token)
    throw new DelayedError()
  }
}

export interface QueuedCall {
  call: CallJob
  /** The name of the lane that carried the job. */
  lane: string
  /** Whether an earlier worker died while it ran this call. */
  isSecondRun: boolean
}

/**
 * Runs one call of a job and sends its reply. It may run twice: the node drops a second reply, and
 * an endpoint that is not idempotent is not called again. A worker that loses the lock sends no
 * reply, because another worker does.
 */
export async function processCall(
  deps: WorkerDeps,
  { call, isSecondRun }: QueuedCall,
  cancelled: AbortSignal,
): Promise<CallOutcome> {
  const { clock, running } = deps
  const queueMs = Math.max(0, clock.now() - (call.admissionEndedAt ?? call.limitsAcquiredAt))
  const times = { ...NO_TIMES, queueMs }
  const remainingMs = (): number => call.deadline - clock.now()
  const progress: CallProgress = { reach: 'unsent' }
  const caller = callerOf(call)
  const { signal, end } = running.begin(call.id, { forMs: remainingMs(), cancelled, caller, progress })
  const run = { times, progress, isSecondRun, remainingMs, signal }
  try {
    const result = await runCall(deps, call, run)
    if (cancelled.reason === LOCK_LOST) throw new Error(LOCK_LOST)
    const reach = reachAfter(call, { result, progress, isSecondRun })
    const room = times.attempts === 0 ? 0 : deps.permitClientOf(call, bucketOf(call)).room
    // A copy, because a request that continues for other calls also continues to count its times.
    await sendOutcome(deps, call, { ...result, times: { ...times }, reach, room })
    await result
      .afterwards?.()
      .catch((error) =>
        deps.log.debug({ err: error, callId: call.id }, 'failed to revalidate a stale answer in the background'),
      )
    return result
  } finally {
    end()
    // Without a ticket the call has no place, unless an earlier run joined the wait queue late.
    if (call.ticket || isSecondRun) void leavePlace(deps, call, run)
  }
}

/** As `processCall`, in a span if the call is traced. */
async function processTraced(deps: WorkerDeps, queued: QueuedCall, cancelled: AbortSignal): Promise<CallOutcome> {
  const { tracing } = deps.telemetry
  const span = tracing && startProcessSpan(tracing, queued.call, queued.lane)
  const call = span ? { ...queued.call, traceparent: span.traceparent } : queued.call
  try {
    const result = await processCall(deps, { ...queued, call }, cancelled)
    const { outcome, fetchedBy } = result
    if (fetchedBy !== undefined && fetchedBy !== call.traceparent) span?.link(fetchedBy)
    span?.end(isFailure(outcome) && ERRORS[outcome.code].status >= 500 ? outcome.code : undefined)
    return result
  } catch (error) {
    span?.end('INTERNAL_ERROR')
    throw error
  }
}

/** How far a run got. However this run ended, an earlier run may have sent a request. */
function reachAfter(
  { isAsync }: CallJob,
  { result, progress, isSecondRun }: { result: CallOutcome; progress: CallProgress; isSecondRun: boolean },
): Reach {
  const { outcome } = result
  const own = progressOf(progress).reach
  const reach = (isFailure(outcome) ? outcome.reach : undefined) ?? own
  if (isSecondRun) return furthestReach(reach, 'maybe-sent')
  // An asynchronous call was accepted and may have waited for minutes, so its unit of the minute
  // stays spent.
  return isAsync ? furthestReach(reach, 'unsent') : reach
}

/**
 * Answers the calls of a job that outlived too many workers, threw, or is of a version or by a
 * document that no worker knows.
 */
export async function replyToLostJob(deps: WorkerDeps, job: Job, cause: Error): Promise<void> {
  const calls = await withoutEndedCalls(deps, parseAnswerable(job.data))
  const isSecondRun = wasLost(job)
  await Promise.all(calls.map((call) => replyToLostCall(deps, call, { cause, isSecondRun })))
}

/** Whether an earlier worker died while it had the job. */
const wasLost = (job: Job): boolean => job.stalledCounter > 0

/**
 * Leaves out calls that were answered or whose callers have left, because their nodes have released
 * their leases.
 */
async function withoutEndedCalls<Call extends AnswerableCall>({ redis }: WorkerDeps, calls: Call[]): Promise<Call[]> {
  const waited = await Promise.all(calls.map((call) => call.isAsync || isInFlight(redis, call)))
  return calls.filter((_, index) => waited[index])
}
