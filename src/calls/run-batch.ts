import type { AdmittedBatch, BatchUnit } from '../admission/admit-batch.ts'
import type { Principal } from '../admission/authenticate.ts'
import type { CheckedTarget } from '../admission/check-call.ts'
import { endRefusedBatchCalls } from '../admission/end-refused-calls.ts'
import { type ForecastDeps, forecastAndJoin } from '../admission/forecast.ts'
import { checkRights } from '../admission/rights.ts'
import { rejectOnAbort } from '../async/abort.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import type { CallOrigin } from '../queue/call-job.ts'
import { refundOf } from '../queue/verdict.ts'
import { noteArrival } from '../telemetry/record-call.ts'
import type { TracedRequest } from '../telemetry/spans.ts'
import { type AwaitedCall, endCall, errorOf, type NodeEndDeps } from './end-call.ts'
import { DEADLINE_GRACE_MS, type FinalResult, type PendingDeps, runPendingCall } from './pending-call.ts'

export interface BatchDeps extends Omit<ForecastDeps, 'health' | 'known'>, NodeEndDeps, PendingDeps {
  health: ForecastDeps['health']
  known: ForecastDeps['known']
  telemetry: NodeEndDeps['telemetry']
}

export interface BatchRun {
  origin: CallOrigin
  /** The headers of the batch's request. */
  headers: TracedRequest['headers']
  /** The address of the caller, read while the connection exists. */
  ip: string
  left: AbortSignal
  /**
   * Looks the caller up again, because the account has changed or the credential has expired.
   *
   * @throws GatewayError if the credential has ended
   */
  authenticateAgain: () => Promise<Principal>
  emit: (unit: BatchUnit, end: FinalResult) => void
}

/**
 * Makes the calls of a batch, as many at once as have a lease, which a call hands to the next. Each
 * call joins its upstream's queue as a single call would, and with the rights that its caller has
 * by then. Calls that cannot be made in time are refused and refunded.
 * @returns units of the month that stay spent
 */
export async function runBatch(deps: BatchDeps, batch: AdmittedBatch, run: BatchRun): Promise<number> {
  const { units, grant, principal, timeoutMs, leaseMs } = batch
  if (!grant) return 0
  const { log } = deps
  const { granted, leases } = grant
  const waiting = units.slice(leases, granted)
  const ending = new AbortController()
  const timer = setTimeout(() => ending.abort(new GatewayError('DEADLINE_EXCEEDED')), timeoutMs + DEADLINE_GRACE_MS)
  const end = AbortSignal.any([run.left, ending.signal])
  const rights = new CurrentRights(principal, {
    authenticateAgain: run.authenticateAgain,
    ip: run.ip,
    now: () => deps.clock.now(),
  })
  const refuse = async (unmade: BatchUnit[], reason: unknown): Promise<void> => {
    const error = toGatewayError(reason)
    const verdict = { code: error.code, reach: 'refused' } as const
    for (const unit of unmade) run.emit(unit, { kind: 'failed', error, verdict })
    const refusals = unmade.map(({ job }) => ({ api: job.slug, endpoint: job.endpoint, error, taken: job }))
    await endRefusedBatchCalls(deps, principal, { origin: run.origin, refusals })
  }
  let charged = 0

  const runUnderOneLease = async (first: BatchUnit): Promise<void> => {
    for (let unit: BatchUnit | undefined = first; unit; ) {
      const ended = await runUnit(deps, unit, { batch, run, rights, end })
      const [error, verdict] = [errorOf(ended.end), await ended.end.verdict]
      // Test calls have no monthly quota.
      if (refundOf(verdict) === 'nothing' && principal.mode === 'live') charged += 1
      // The call was cancelled although its caller is still there, because the account may no
      // longer make calls.
      if (error?.code === 'CALL_CANCELLED') ending.abort(error)
      const next: BatchUnit | undefined = end.aborted ? undefined : waiting.shift()
      run.emit(unit, ended.end)
      try {
        const { version } = await endCall(deps, ended, next && { callId: next.job.id, leaseMs })
        if (next) rights.note(version)
      } catch (error) {
        // Without Redis no further call can be made. The next call may already have the lease,
        // because Redis may have run the step.
        log.warn({ err: error, callId: unit.job.id }, 'failed to complete a call of a batch')
        if (next) void refuse([next], error)
        ending.abort(error)
        return
      }
      unit = next
    }
  }
  try {
    await Promise.all(units.slice(0, leases).map(runUnderOneLease))
    await refuse(waiting.splice(0), end.reason)
    return charged
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The rights of a batch's caller. They may change while the batch runs, for example if its key
 * expires or is revoked, or its plan is lowered. Each end of a call returns the account's version.
 * If the version has changed or the credential has expired, the next call looks the caller up
 * again.
 */
class CurrentRights {
  readonly #deps: Pick<BatchRun, 'authenticateAgain' | 'ip'> & { now: () => number }
  #principal: Principal
  #version: string

  constructor(principal: Principal, deps: Pick<BatchRun, 'authenticateAgain' | 'ip'> & { now: () => number }) {
    this.#principal = principal
    this.#version = principal.version
    this.#deps = deps
  }

  note(version: string): void {
    this.#version = version
  }

  /**
   * @throws GatewayError if the caller may no longer call this API. Fails closed if the caller
   *   cannot be looked up.
   */
  async check(checked: CheckedTarget): Promise<void> {
    const { version, expiresAt } = this.#principal
    if (version !== this.#version || this.#deps.now() >= expiresAt) {
      this.#principal = await this.#deps.authenticateAgain()
      this.#version = this.#principal.version
    }
    checkRights(checked, this.#principal, this.#deps)
  }
}

async function runUnit(
  deps: BatchDeps,
  { job: admitted, checked }: BatchUnit,
  { batch, run, rights, end }: { batch: AdmittedBatch; run: BatchRun; rights: CurrentRights; end: AbortSignal },
): Promise<AwaitedCall & { end: FinalResult }> {
  const { principal } = batch
  const { origin, headers } = run
  const arrival = noteArrival(deps, origin, { url: `/v1/call/${admitted.slug}${admitted.endpoint}`, headers })
  // The batch took its limits when it arrived.
  const awaited = { arrival, job: admitted, principal }
  let admission: AwaitedCall['admission']
  try {
    end.throwIfAborted()
    await rights.check(checked)
    // The call waited for the plan's limit of calls in flight, not for its upstream.
    const due = { ...admitted, limitsAcquiredAt: deps.clock.now() }
    const queueing = await forecastAndJoin(deps, { ...checked, job: due })
    admission = { admissionMs: performance.now() - arrival.startedAt, quotedMs: queueing.etaMs }
    const over = rejectOnAbort(end)
    // The wait may end before anybody listens.
    over.catch(() => undefined)
    const ended = await runPendingCall(deps, { job: due, queueing, arrival }, over)
    if (ended.kind === 'accepted') throw new Error('a call of a batch is not asynchronous')
    return { ...awaited, admission, end: ended }
  } catch (refusal) {
    const error = toGatewayError(refusal)
    const end = { kind: 'failed', error, verdict: { code: error.code, reach: 'refused' } } as const
    return { ...awaited, ...(admission && { admission }), end }
  }
}
