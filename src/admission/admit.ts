import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { SingleFlight } from '../async/single-flight.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { countMonthUsage } from '../db/usage.ts'
import { GatewayError } from '../errors.ts'
import {
  type AccountLimits,
  type LimitReading,
  type LimitState,
  readLimits,
  refundLimits,
  STALE,
} from '../limits/account-limits.ts'
import { planOf, weightOf } from '../limits/plans.ts'
import type { CallCompletionBatcher } from '../limits/settlement-batcher.ts'
import { requireAudience } from '../oauth/resources.ts'
import type { CallJob } from '../queue/call-job.ts'
import { isUnacknowledged } from '../redis/redis-error.ts'
import {
  type AuthenticationDeps,
  authenticateCall,
  forgetPrincipal,
  isUpToDate,
  type Principal,
} from './authenticate.ts'
import { type CheckedCall, type CheckedTarget, checkCall } from './check-call.ts'
import { type ForecastDeps, forecastCall, type QueueTicket } from './forecast.ts'
import type { Preference } from './preference.ts'

export interface AdmissionDeps extends AuthenticationDeps, ForecastDeps {
  catalog: Catalog
  replies: { stream: string }
  accountLimits: AccountLimits
  completions: Pick<CallCompletionBatcher, 'flush' | 'compensate' | 'countRefusal'>
  /** Look-ups of what an account has used this month, for Redis that does not know. */
  monthLoads: SingleFlight<number>
}

/** A call that may be queued. */
export interface Admitted {
  principal: Principal
  /** What the account has left, for the headers. */
  limits: LimitState
  job: CallJob
  queued: QueueTicket
  preference: Preference
}

/** What is known of a call while it is admitted; more with each step, so that a refusal can tell what there is. */
export interface Admission {
  principal?: Principal
  limits?: LimitState
  /** Names the call from when its caller is known. */
  callId?: string
}

/** Longest an asynchronous call may take, milliseconds: nobody waits on a socket for it. */
const ASYNC_MS_MAX = 600_000

/** Lease of a call in flight beyond its deadline, milliseconds: it is there for nodes that die, not for slow answers. */
const LEASE_GRACE_MS = 10_000

/**
 * Decides whether a call is accepted: credential, API and endpoint, method, plan tier, parameters, then in one atomic
 * step the account's limits, and last the forecast of its turn at the upstream. A refusal costs nothing.
 *
 * @throws GatewayError with the code of the first check that fails
 */
export async function admitCall(
  sources: AdmissionDeps,
  request: FastifyRequest,
  admission: Admission,
): Promise<Admitted> {
  for (let tries = 0; tries < 3; tries += 1) {
    const admitted = await tryAdmit(sources, request, admission)
    if (admitted !== STALE) return admitted
    // Something about the account changed: who calls is looked up anew, and every check is made again.
    forgetPrincipal(sources, request.headers, admission.principal)
  }
  throw new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 1_000 })
}

async function tryAdmit(
  sources: AdmissionDeps,
  request: FastifyRequest,
  admission: Admission,
): Promise<Admitted | typeof STALE> {
  const { config } = sources
  const principal = await authenticateCall(sources, request)
  requireAudience(principal, request, config.http.baseUrl)
  admission.principal = principal
  admission.callId ??= `call_${randomUUID().replaceAll('-', '')}`
  let checked: CheckedCall
  try {
    checked = checkCall(sources.catalog, request, principal)
  } catch (refusal) {
    // Nobody is refused, or told why, by what this node remembers of an account that has changed meanwhile.
    if (!(await isUpToDate(sources, principal))) return STALE
    throw refusal
  }
  const { preference } = checked
  const isAsync = preference.waitMs !== undefined
  const id = admission.callId
  const timeoutMs = isAsync ? Math.max(ASYNC_MS_MAX, config.callTimeoutMs) : config.callTimeoutMs
  const plan = config.plans[planOf(principal.tier)]
  const options = takeOptions(sources, principal, timeoutMs)
  // Who has its answer and sends the next call finds what that one held given back.
  sources.completions.flush(principal)
  const limits = await sources.accountLimits
    .acquire({
      ...options,
      subject: principal,
      tier: principal.tier,
      limits: plan,
      callId: id,
    })
    .catch((error) => {
      if (isUnacknowledged(error)) sources.completions.compensate(principal, id)
      throw error
    })
  if (limits === STALE) return STALE
  admission.limits = limits
  const resultBytesMax = isAsync ? plan.resultMegabytes * 1_000_000 : undefined
  const job = createJob(sources, { principal, checked, id, now: limits.now, timeoutMs, resultBytesMax })
  try {
    const queued = await forecastJob(sources, { job, checked, principal })
    return { principal, limits, job, queued, preference }
  } catch (error) {
    admission.limits = await refundLimits(sources.redis, principal, { callId: id, state: limits }).catch(() => {
      sources.completions.compensate(principal, id)
      return limits
    })
    throw error
  }
}

/** A call as a job, before its forecast. `now` is Redis' clock. */
export function createJob(
  { replies }: Pick<AdmissionDeps, 'replies'>,
  call: {
    principal: Principal
    checked: CheckedTarget
    id: string
    now: number
    timeoutMs: number
    /** Of an asynchronous call, see `CallJob`. */
    resultBytesMax?: number | undefined
  },
): CallJob {
  const { principal, checked, id, now, timeoutMs, resultBytesMax } = call
  const { api, endpoint, providerKey, parameters, extra, raw, scenario } = checked
  return {
    v: 1,
    id,
    accountId: principal.accountId,
    ...(principal.shareGroup === principal.accountId ? {} : { group: principal.shareGroup }),
    ...(principal.keyId === undefined ? {} : { keyId: principal.keyId }),
    ...(providerKey === undefined ? {} : { providerKey }),
    mode: principal.mode,
    slug: api.slug,
    endpoint: endpoint.path,
    parameters,
    extra,
    raw,
    isAsync: resultBytesMax !== undefined,
    ...(resultBytesMax === undefined ? {} : { resultBytesMax }),
    ...(scenario === undefined ? {} : { scenario }),
    replyTo: replies.stream,
    bundledReplies: true,
    enqueuedAt: now,
    deadline: now + timeoutMs,
  }
}

/** Forecasts a call and notes in its job what came of it. @throws GatewayError when its turn would come too late */
export async function forecastJob(
  deps: ForecastDeps,
  { job, checked, principal }: { job: CallJob; checked: CheckedTarget; principal: Principal },
): Promise<QueueTicket> {
  const { api, endpoint } = checked
  const queued = await forecastCall(deps, { api, endpoint, job, weight: weightOf(principal.tier) })
  const { place, cacheOnlyMs } = queued
  Object.assign(job, place && { place }, cacheOnlyMs === undefined ? undefined : { cacheOnlyMs })
  return queued
}

/** What the account has left, for the headers of a refusal that took nothing. */
export async function currentLimits(sources: AdmissionDeps, principal: Principal): Promise<LimitState | undefined> {
  const plan = sources.config.plans[planOf(principal.tier)]
  return await readLimits(sources.redis, { ...takeOptions(sources, principal, 0), subject: principal, limits: plan })
}

/** How an account's limits are read for a call that may take this long, milliseconds. */
export function takeOptions(
  { db, monthLoads }: AdmissionDeps,
  { accountId, keyId }: Principal,
  timeoutMs: number,
): Omit<LimitReading, 'subject' | 'limits'> {
  return {
    leaseMs: timeoutMs + LEASE_GRACE_MS,
    // Fails closed: without Redis' count and without the ledger nobody knows what is left.
    loadMonthUsed: (month) =>
      monthLoads.run(`${accountId} ${month}`, () => countMonthUsage(db, { userId: accountId }, month)),
    loadConnectionUsed: (month) =>
      monthLoads.run(`${accountId} ${keyId} ${month}`, () =>
        countMonthUsage(db, { userId: accountId, key: keyId }, month),
      ),
  }
}
