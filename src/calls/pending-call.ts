import { setTimeout as delay } from 'node:timers/promises'
import type { Admitted } from '../admission/admit.ts'
import { waitEntryOf } from '../admission/forecast.ts'
import type { KnownFromReplies } from '../admission/known-from-replies.ts'
import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import type { CallerSocket } from '../http/request/caller-socket.ts'
import { noteExpectedEnd } from '../limits/end-calls.ts'
import type { Log } from '../log.ts'
import { recordAsyncCall } from '../queue/async-call.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { CallToQueue } from '../queue/call-queue.ts'
import type { ReplyInbox } from '../queue/reply.ts'
import { type Reply, reachOf } from '../queue/reply-head.ts'
import { CALLER_LEFT_STATUS, type Verdict } from '../queue/verdict.ts'
import type { RedisClock } from '../redis/clock.ts'
import { isUnacknowledged } from '../redis/redis-error.ts'
import type { CallArrival } from '../telemetry/record-call.ts'
import { startSendSpan } from '../telemetry/spans.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import { awaitReach, type CallToWithdraw, type Withdrawal, type WithdrawDeps, withdrawCall } from './withdraw-call.ts'

export interface PendingDeps extends WithdrawDeps {
  replies: Pick<ReplyInbox, 'awaitReply'>
  known: Pick<KnownFromReplies, 'learn'>
  health: { usualMs: (slug: string) => number | undefined }
  telemetry: Pick<Telemetry, 'tracing'>
  clock: Pick<RedisClock, 'now'>
  log: Log
}

/** How long after the deadline a node waits for the worker's own reply, milliseconds. */
export const DEADLINE_GRACE_MS = 250

/**
 * The caller closed the connection. Nobody reads the answer; logs, metrics and the console show
 * this code.
 */
export class CallerLeftError extends GatewayError {
  constructor() {
    super('CALL_CANCELLED', { message: 'The caller left, or cancelled the request.' })
  }

  override get status(): number {
    return CALLER_LEFT_STATUS
  }
}

/** How a call ended while its caller waited. `accepted`: it is asynchronous and continues. */
export type CallResult = { kind: 'accepted' } | FinalResult

export type FinalResult = { kind: 'reply'; reply: Reply; verdict: Verdict } | FailedResult

interface FailedResult {
  kind: 'failed'
  error: GatewayError
  /**
   * A promise for a call whose caller left, because the verdict depends on the worker's reply. It
   * never rejects.
   */
  verdict: Verdict | Promise<Verdict>
}

/** A call that is admitted and not yet queued. */
interface CallToRun extends Pick<Admitted, 'job' | 'queueing'> {
  arrival: Pick<CallArrival, 'origin' | 'startedAt' | 'span'>
}

/**
 * Runs a call on its node: queues it, waits for its reply, and withdraws it if the wait ends first.
 * An asynchronous call that is queued continues, even if this node ends. Never throws.
 *
 * @param waitOver rejects when nobody waits any longer; never resolves
 */
export async function runPendingCall(
  deps: PendingDeps,
  call: CallToRun,
  waitOver: Promise<never>,
): Promise<CallResult> {
  const { queueing } = call
  const job = queuedJob(deps, call)
  const { mustNotRepeat, keys, giveSpareRoomBack } = queueing
  const { reply, forget } = deps.replies.awaitReply(job.id)
  noteExpectedEnd(deps, job, queueing.etaMs)
  let jobId: string | undefined
  let verdict: FailedResult['verdict'] | undefined
  try {
    // The caller may have left during admission.
    await Promise.race([waitOver, undefined])
    if (job.isAsync) await recordAsyncCall(deps.redis, job, waitEntryOf(job, keys))
    const toQueue = { call: job, mayShareJob: !job.isAsync && !mustNotRepeat }
    const { tracing } = deps.telemetry
    jobId = await (tracing ? enqueueTraced(tracing, deps, toQueue) : deps.queues.enqueue(toQueue))
    const answer = await Promise.race([reply, waitOver])
    const { head } = answer
    deps.known.learn(job, keys?.answer, head)
    return { kind: 'reply', reply: answer, verdict: { code: head.code, reach: reachOf(head) } }
  } catch (thrown) {
    if (job.isAsync && jobId !== undefined) return { kind: 'accepted' }
    const withdrawing = withdraw(deps, { id: job.id, slug: job.slug, waitEntry: waitEntryOf(job, keys), jobId })
    const failure = { thrown, mayBeQueued: jobId !== undefined || isUnacknowledged(thrown), withdrawing }
    const error = await errorOfCall(failure, mustNotRepeat)
    verdict = verdictOf(error, failure, reply)
    return { kind: 'failed', error, verdict }
  } finally {
    giveSpareRoomBack?.()
    // If the reply comes after the caller left, it still decides what the call costs.
    if (verdict instanceof Promise) void verdict.finally(forget)
    else forget()
  }
}

/**
 * The job of a call as it is queued. It has the trace of the call's arrival, and for an
 * asynchronous call, whose worker writes the log, its origin.
 */
function queuedJob({ clock }: PendingDeps, { job, queueing, arrival }: CallToRun): CallJob {
  const { origin, startedAt, span } = arrival
  const { etaMs, ofJob } = queueing
  return {
    ...job,
    ...ofJob,
    admissionEndedAt: clock.now(),
    ...(job.isAsync && { origin: { ...origin, quotedMs: etaMs, admissionMs: performance.now() - startedAt } }),
    ...(span && { traceparent: span.traceparent }),
  }
}

/**
 * As `CallQueues.enqueue`, in a span if the call is traced.
 * @throws what `enqueue` throws
 */
async function enqueueTraced(
  tracing: Tracing,
  { queues }: PendingDeps,
  { call, mayShareJob }: CallToQueue,
): Promise<string> {
  const span = startSendSpan(tracing, call, queues.of(call.slug).name)
  try {
    const traced = span ? { ...call, traceparent: span.traceparent } : call
    const jobId = await queues.enqueue({ call: traced, mayShareJob })
    span?.end()
    return jobId
  } catch (error) {
    span?.end(toGatewayError(error).code)
    throw error
  }
}

/** Why a node stopped waiting for a reply. */
interface WaitFailure {
  thrown: unknown
  /** Whether the call was queued, or Redis may have queued it without an acknowledgement. */
  mayBeQueued: boolean
  withdrawing: Promise<Withdrawal>
}

/**
 * The error for the caller. 503 means that nothing was sent, and callers repeat such a call. So if
 * the call must not be repeated, 503 needs a proof.
 */
async function errorOfCall(
  { thrown, mayBeQueued, withdrawing }: WaitFailure,
  mustNotRepeat: boolean,
): Promise<GatewayError> {
  const error = toGatewayError(thrown)
  // Nobody reads the error if the caller left.
  if (!mustNotRepeat || !mayBeQueued || error.code === 'CALL_CANCELLED') return error
  return (await isProvenUnsent(withdrawing)) ? error : new GatewayError('OUTCOME_UNKNOWN', { cause: error })
}

function verdictOf(
  { code }: GatewayError,
  { mayBeQueued, withdrawing }: WaitFailure,
  reply: Promise<Reply>,
): FailedResult['verdict'] {
  // A call that was not queued is refused. If its caller left, it spends a unit of the minute,
  // because admission must not be free for callers that leave.
  if (!mayBeQueued) return { code, reach: code === 'CALL_CANCELLED' ? 'unsent' : 'refused' }
  // Unless the call was cancelled, its code decides what it costs, so nobody waits for its reply.
  if (code !== 'CALL_CANCELLED') return { code, reach: 'maybe-sent' }
  return withdrawing.then(async (withdrawal) => ({ code, reach: await awaitReach(withdrawal, reply) }))
}

/** How long a failure waits for the withdrawal that proves that nothing was sent, milliseconds. */
const PROOF_MS_MAX = 1_000

/** Fails closed: without a proof in time, a request may have been sent. */
async function isProvenUnsent(withdrawing: Promise<Withdrawal>): Promise<boolean> {
  const proof = await Promise.race([withdrawing, delay(PROOF_MS_MAX, undefined, { ref: false })])
  return proof?.isRemoved === true && proof.reach === 'unsent'
}

/**
 * Why the wait for an asynchronous call is over: the time that its caller prefers to wait has
 * passed.
 */
const STILL_RUNNING = new Error('the call goes on')

/**
 * Queues a call and waits for its reply, until its deadline, or as long as the caller prefers, or
 * until the caller leaves. Never throws.
 */
export async function awaitCall(
  deps: PendingDeps & { config: { callTimeoutMs: number } },
  admitted: CallToRun & Pick<Admitted, 'preference'>,
  socket: CallerSocket,
): Promise<CallResult> {
  const { job, preference } = admitted
  const { waitMs = deps.config.callTimeoutMs + DEADLINE_GRACE_MS } = preference
  const onTimeout = () => (job.isAsync ? STILL_RUNNING : new GatewayError('DEADLINE_EXCEEDED'))
  const wait = waitForCaller(socket, waitMs, onTimeout)
  try {
    return await runPendingCall(deps, admitted, wait.over)
  } finally {
    wait.end()
  }
}

/**
 * Waits while the caller is connected. An AbortController with listeners would cost several times
 * as much for every call.
 */
function waitForCaller(
  socket: CallerSocket,
  waitMs: number,
  onTimeout: () => Error,
): { over: Promise<never>; end: () => void } {
  const { promise: over, reject } = Promise.withResolvers<never>()
  // The wait may end before anybody listens.
  over.catch(() => undefined)
  const onClose = () => reject(new CallerLeftError())
  const timer = setTimeout(() => reject(onTimeout()), waitMs)
  if (socket.destroyed) onClose()
  else socket.once('close', onClose)
  return {
    over,
    end: () => {
      clearTimeout(timer)
      socket.off('close', onClose)
    },
  }
}

/**
 * Withdraws a call again and again while Redis is away: its place would hold up others until its
 * deadline, and its job, which Redis may have queued without saying so, would send a request for
 * nobody. Never rejects.
 */
async function withdraw(deps: PendingDeps, call: CallToWithdraw): Promise<Withdrawal> {
  const repeating = { ...RESTART_RETRY, mayRepeat: () => deps.redis.status !== 'end' }
  try {
    return await retryUntil(() => withdrawCall(deps, call), repeating)
  } catch (error) {
    deps.log.debug({ err: error, callId: call.id }, 'failed to withdraw a call')
    return { isRemoved: false, reach: 'maybe-sent' }
  }
}
