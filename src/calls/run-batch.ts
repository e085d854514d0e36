import { withQueueing } from '../admission/admit.ts'
import type { AdmittedBatch, BatchUnit } from '../admission/admit-batch.ts'
import type { Principal } from '../admission/authenticate.ts'
import { countBatchRefusals } from '../admission/count-batch-refusals.ts'
import { countRefusal } from '../admission/count-refusal.ts'
import { type ForecastDeps, forecastAndJoin, type Queueing } from '../admission/forecast.ts'
import { checkRights } from '../admission/rights.ts'
import { rejectOnAbort } from '../async/abort.ts'
import { Batcher } from '../async/batcher.ts'
import type { Api } from '../catalog/catalog.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import { replyError } from '../http/call-answer.ts'
import type { CallCompletionBatcher } from '../limits/call-completion-batcher.ts'
import { refundOf } from '../limits/charge.ts'
import { type CallToEnd, type EndStep, endCalls, type Refund } from '../limits/end-calls.ts'
import { weightOf } from '../limits/plans.ts'
import type { Log } from '../log.ts'
import type { CallOrigin } from '../queue/call-job.ts'
import type { ReplyInbox } from '../queue/reply.ts'
import { type Reply, wasRequestSent } from '../queue/reply-head.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { ObservedCall, type ObservedCallDeps } from '../telemetry/observe-call.ts'
import { DEADLINE_GRACE_MS } from './await-call.ts'
import { shownErrorStatus, usageStatusOfCancelled } from './call-status.ts'
import { awaitWasSent, type CallToWithdraw, type Withdrawal, withdrawCall, withdrawFailed } from './withdraw-call.ts'

export interface BatchDeps extends ForecastDeps, ObservedCallDeps {
  redis: RedisConnection
  replies: Pick<ReplyInbox, 'awaitReply'>
  completions: Pick<CallCompletionBatcher, 'count' | 'countRefusal' | 'release'>
  log: Log
}

export type BatchOutcome = { reply: Reply } | { error: GatewayError }

export interface BatchRun {
  origin: CallOrigin
  left: AbortSignal
  /** Looks the caller up again because the account has changed. @throws GatewayError if the credential has ended */
  authenticateAgain: () => Promise<Principal>
  emit: (unit: BatchUnit, outcome: BatchOutcome) => void
}

const ENDED_TOGETHER_MAX = 50

interface Ending {
  outcome: BatchOutcome
  usageStatus: number
  /** `all`: it was refused before anything was sent. */
  refund: Refund
}

/**
 * Makes the calls of a batch, as many at once as have a lease, which a call hands to the next. Each call joins its
 * upstream's queue as a single call would, and with the rights that its caller has by then. Calls that cannot be made
 * in time are refused and refunded.
 * @returns units of the month that stay spent
 */
export async function runBatch(deps: BatchDeps, batch: AdmittedBatch, run: BatchRun): Promise<number> {
  const { units, grant, principal, timeoutMs } = batch
  if (!grant) return 0
  const { redis, log } = deps
  const { granted, leases } = grant
  const waiting = units.slice(leases, granted)
  const { ending, dispose } = limitBatch(run.left, timeoutMs + DEADLINE_GRACE_MS)
  const end = openSteps(redis, batch)
  const rights = new CurrentRights(principal, {
    authenticateAgain: run.authenticateAgain,
    now: () => deps.health.now(),
  })
  const refuse = (unmade: BatchUnit[], reason: unknown): void =>
    refuseUnits(deps, { principal, run, unmade, error: toGatewayError(reason) })
  const drop = async (unmade: BatchUnit[], reason: unknown): Promise<void> => {
    refuse(unmade, reason)
    const dropped = unmade.map((unit) => endOf(unit, 'all'))
    await Promise.all(dropped.map(end)).catch((error) => {
      log.warn({ err: error, calls: dropped.length }, 'failed to give back at once what calls of a batch took')
      for (const call of dropped) deps.completions.release(principal, call)
    })
  }
  let charged = 0

  const runUnderOneLease = async (first: BatchUnit): Promise<void> => {
    for (let unit: BatchUnit | undefined = first; unit; ) {
      const { outcome, usageStatus, refund } = await runUnit(deps, unit, { batch, run, rights, end: ending.signal })
      // Test calls have no monthly quota.
      if (refund === 'nothing' && principal.mode === 'live') charged += 1
      // Cancelled though its caller has not left: the account may make no calls any more.
      if ('error' in outcome && outcome.error.code === 'CALL_CANCELLED') ending.abort(outcome.error)
      const next: BatchUnit | undefined = ending.signal.aborted ? undefined : waiting.shift()
      run.emit(unit, outcome)
      if (refund === 'all') countRefusal(deps, principal, { slug: unit.job.slug, status: usageStatus })
      else deps.completions.count(unit.job, usageStatus)
      try {
        const { version } = await end(endOf(unit, refund, next))
        if (next) rights.note(version)
      } catch (error) {
        // Without Redis no other call can be made. The next one may have got the lease: Redis may have run the step.
        log.warn({ err: error, callId: unit.job.id }, 'failed to complete a call of a batch')
        deps.completions.release(principal, endOf(unit, refund))
        if (next) {
          refuse([next], error)
          deps.completions.release(principal, endOf(next, 'all'))
        }
        ending.abort(error)
        return
      }
      unit = next
    }
  }
  try {
    await Promise.all(units.slice(0, leases).map(runUnderOneLease))
    await drop(waiting.splice(0), ending.signal.reason)
    return charged
  } finally {
    dispose()
  }
}

function refuseUnits(
  deps: BatchDeps,
  {
    principal,
    run,
    unmade,
    error,
  }: Pick<AdmittedBatch, 'principal'> & { run: BatchRun; unmade: BatchUnit[]; error: GatewayError },
): void {
  for (const unit of unmade) run.emit(unit, { error })
  const refusals = unmade.map(({ job }) => ({ api: job.slug, endpoint: job.endpoint, id: job.id, error }))
  countBatchRefusals(deps, principal, { origin: run.origin, refusals })
}

/**
 * The rights of a batch's caller, which may change while the batch runs: its key may expire or be revoked, its plan
 * lowered. Each step brings the account's version, and another version makes the next call look the caller up again.
 */
class CurrentRights {
  readonly #deps: Pick<BatchRun, 'authenticateAgain'> & { now: () => number }
  #principal: Principal
  #version: string

  constructor(principal: Principal, deps: Pick<BatchRun, 'authenticateAgain'> & { now: () => number }) {
    this.#principal = principal
    this.#version = principal.version
    this.#deps = deps
  }

  note(version: string): void {
    this.#version = version
  }

  /** @throws GatewayError if the caller may not call this API any more. Fails closed if nobody can be looked up. */
  async check(api: Api): Promise<void> {
    const { version, expiresAt } = this.#principal
    if (version !== this.#version || this.#deps.now() >= expiresAt) {
      this.#principal = await this.#deps.authenticateAgain()
      this.#version = this.#principal.version
    }
    checkRights(api, this.#principal)
  }
}

function endOf({ job }: BatchUnit, refund: Refund, next?: BatchUnit): CallToEnd {
  return { callId: job.id, at: job.limitsAcquiredAt, keyId: job.keyId, refund, next: next?.job.id }
}

/** Calls of a batch that end in one turn of the event loop, as those of a shared job often do, are one step in Redis. */
function openSteps(
  redis: RedisConnection,
  { principal, leaseMs }: AdmittedBatch,
): (call: CallToEnd) => Promise<EndStep> {
  const ends = new Batcher<CallToEnd, EndStep>(
    async (_batch, calls) => {
      const step = await endCalls(redis, principal, { calls, leaseMs })
      return calls.map(() => step)
    },
    { itemsMax: ENDED_TOGETHER_MAX },
  )
  return (call) => ends.add('', call)
}

function limitBatch(left: AbortSignal, timeMs: number): { ending: AbortController; dispose: () => void } {
  const ending = new AbortController()
  const onLeft = () => ending.abort(left.reason)
  left.addEventListener('abort', onLeft, { once: true })
  if (left.aborted) onLeft()
  const timer = setTimeout(() => ending.abort(new GatewayError('DEADLINE_EXCEEDED')), timeMs)
  const dispose = (): void => {
    clearTimeout(timer)
    left.removeEventListener('abort', onLeft)
  }
  return { ending, dispose }
}

async function runUnit(
  deps: BatchDeps,
  { job, checked }: BatchUnit,
  { batch, run, rights, end }: { batch: AdmittedBatch; run: BatchRun; rights: CurrentRights; end: AbortSignal },
): Promise<Ending> {
  const { principal } = batch
  const observed = new ObservedCall(deps, run.origin, `/v1/call/${job.slug}${job.endpoint}`)
  const fail = (thrown: unknown, rest: Omit<Ending, 'outcome'>): Ending => {
    const error = toGatewayError(thrown)
    const { code, cause, details } = error
    const { retryAfterMs } = details
    observed.ended(shownErrorStatus(error), { code, cause, caller: principal, callId: job.id, retryAfterMs })
    return { outcome: { error }, ...rest }
  }
  let queueing: Queueing | undefined
  let jobId: string | undefined
  const { reply, forget } = deps.replies.awaitReply(job.id)
  try {
    end.throwIfAborted()
    await rights.check(checked.api)
    // It has waited for the plan's limit of calls in flight, not for its upstream.
    const due = { ...job, limitsAcquiredAt: deps.health.now() }
    queueing = await forecastAndJoin(deps, { ...checked, job: due, weight: weightOf(principal.tier) })
    const admissionEndedAt = deps.health.now()
    const call = withQueueing(due, queueing, { traceparent: observed.traceparent, admissionEndedAt })
    observed.admitted(call, queueing.etaMs)
    jobId = await deps.queues.enqueue({ call, mayShareJob: queueing.mayShareJob })
  } catch (error) {
    forget()
    queueing?.giveSpareRoomBack?.()
    const { waitEntry } = queueing ?? {}
    if (waitEntry) withdrawFailed(deps, { id: job.id, slug: job.slug, waitEntry, jobId })
    return fail(error, { usageStatus: toGatewayError(error).status, refund: 'all' })
  }
  try {
    const answer = await Promise.race([reply, rejectOnAbort(end)])
    observed.replied(answer)
    deps.knownAnswers.learn(queueing.answerKey, answer.head)
    deps.spareRoom.learn(job, answer.head)
    if (answer.head.code) {
      const error = replyError(answer.head)
      if (error.code === 'CALL_CANCELLED') return fail(error, cancelled(wasRequestSent(answer.head)))
      const refund = answer.head.isRefused ? 'all' : refundOf(error.status)
      return fail(error, { usageStatus: error.status, refund })
    }
    observed.ended(200)
    return { outcome: { reply: answer }, usageStatus: 200, refund: 'nothing' }
  } catch (error) {
    queueing.giveSpareRoomBack?.()
    const withdrawal = await withdraw(deps, { job, waitEntry: queueing.waitEntry, jobId })
    const { code, status } = toGatewayError(error)
    if (code === 'CALL_CANCELLED') return fail(error, cancelled(await awaitWasSent(withdrawal, reply)))
    return fail(error, { usageStatus: status, refund: 'month' })
  } finally {
    forget()
    queueing.giveSpareRoomBack?.()
  }
}

function cancelled(wasSent: boolean): Pick<Ending, 'usageStatus' | 'refund'> {
  return { usageStatus: usageStatusOfCancelled(wasSent), refund: wasSent ? 'nothing' : 'month' }
}

/** @returns where the call was; 'maybe-taken' where that is not known */
async function withdraw(
  deps: BatchDeps,
  { job, waitEntry, jobId }: Pick<CallToWithdraw, 'waitEntry' | 'jobId'> & { job: BatchUnit['job'] },
): Promise<Withdrawal> {
  try {
    return await withdrawCall(deps, { id: job.id, slug: job.slug, waitEntry, jobId })
  } catch (error) {
    deps.log.debug({ err: error, callId: job.id }, 'failed to withdraw a call')
    return 'maybe-taken'
  }
}
