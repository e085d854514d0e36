import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import type { Catalog } from '../catalog/catalog.ts'
import { GatewayError } from '../errors.ts'
import type { AccountRequests } from '../http/request/account-requests.ts'
import { countBytesForAccount } from '../http/server/holding.ts'
import { StaleRightsError } from '../limits/account-limits.ts'
import { LimitRefusedError } from '../limits/limit-refusal.ts'
import { countedCredential, type LimitState } from '../limits/limit-state.ts'
import { PLAN_OF_TIER, WEIGHT_OF_TIER } from '../limits/plans.ts'
import { requireAudience } from '../oauth/resources.ts'
import { type CallJob, createId } from '../queue/call-job.ts'
import { acquireLimits, type LimitDeps, limitQuery } from './acquire-limits.ts'
import {
  type AuthenticationDeps,
  authenticateCall,
  forgetPrincipal,
  isUpToDate,
  type Principal,
} from './authenticate.ts'
import type { Preference } from './call-request.ts'
import { type CheckedCall, type CheckedTarget, checkCall, type ServedDeps } from './check-call.ts'
import { type ForecastDeps, forecastAndJoin, type Queueing } from './forecast.ts'
import { requestSubject } from './rights.ts'

export interface AdmissionDeps extends AuthenticationDeps, ForecastDeps, LimitDeps, ServedDeps {
  config: AuthenticationDeps['config']
  db: AuthenticationDeps['db']
  redis: AuthenticationDeps['redis']
  catalog: Catalog
  accountRequests: Pick<AccountRequests, 'checkRefusedCalls'>
  replies: { stream: string }
}

export interface Admitted {
  principal: Principal
  limits: LimitState
  /** Its place in the wait queue, and when admission ended, are added when it is queued. */
  job: CallJob
  queueing: Queueing
  preference: Preference
}

/** A refused call, and what admission knew about it. */
export interface Refused {
  /** A GatewayError, or an error of a dependency. */
  refusal: unknown
  /** Undefined if the credential was refused. The call then has no id either. */
  principal?: Principal
  callId?: string
  /** What the account has left; undefined if its limits were not checked. */
  limits?: LimitState
  /**
   * Set if the call took units before it was refused. The caller of `admitCall` must end the call,
   * which gives them back.
   */
  taken?: Pick<CallJob, 'id' | 'limitsAcquiredAt'>
}

/** Longest duration of an asynchronous call, milliseconds. */
const ASYNC_MS_MAX = 600_000

const STALE_TRIES_MAX = 6

/**
 * Pause before a further try with a stale principal, milliseconds, except before the second try.
 * Changes of an account may follow one another, for example when a provider key is saved, checked
 * and used.
 */
const STALE_PAUSE_MS = 20

/**
 * Checks credential, API and endpoint, method, plan tier and parameters; acquires the account's
 * limits in one atomic step; forecasts the permit, and joins the wait queue. Never throws.
 */
export async function admitCall(deps: AdmissionDeps, request: FastifyRequest): Promise<Admitted | Refused> {
  const callId = createId('call')
  for (let tries = 1; ; tries += 1) {
    let caller: Pick<Refused, 'principal' | 'callId'> = {}
    try {
      const principal = await identifyCaller(deps, request)
      caller = { principal, callId }
      return await admit(deps, request, { principal, callId })
    } catch (error) {
      const refusal = await refusalUnlessStale(deps, request, { error, principal: caller.principal, tries })
      if (refusal === undefined) continue
      return { ...caller, refusal, ...(refusal instanceof LimitRefusedError && { limits: refusal.limits }) }
    }
  }
}

/**
 * Finds out who makes a call. It needs no round trip if the credential is cached.
 * @throws GatewayError
 */
export async function identifyCaller(
  deps: AuthenticationDeps & Pick<AdmissionDeps, 'accountRequests'>,
  request: FastifyRequest,
): Promise<Principal> {
  const principal = await authenticateCall(deps, request)
  if (principal.connection) requireAudience(principal.connection, request, deps.config.http.baseUrl)
  const subject = requestSubject(principal, request)
  deps.accountRequests.checkRefusedCalls(subject)
  countBytesForAccount(request, subject)
  return principal
}

/**
 * The refusal behind an error of admission. Undefined if the error is that the rights of the caller
 * were stale: then they are forgotten, and admission tries again, some times.
 */
export async function refusalUnlessStale(
  deps: AuthenticationDeps,
  { headers }: Pick<FastifyRequest, 'headers'>,
  { error, principal, tries }: { error: unknown; principal: Principal | undefined; tries: number },
): Promise<unknown> {
  if (!(error instanceof StaleRightsError)) return error
  forgetPrincipal(deps, headers, principal)
  if (tries === STALE_TRIES_MAX) return new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 1_000 })
  if (tries > 1) await delay(STALE_PAUSE_MS)
  return undefined
}

/**
 * Admits a call whose caller is known.
 *
 * @throws StaleRightsError if the account changed since its principal was looked up, the refusal of
 *   the account's limits, and what a dependency throws
 */
async function admit(
  deps: AdmissionDeps,
  request: FastifyRequest,
  { principal, callId }: { principal: Principal; callId: string },
): Promise<Admitted | Refused> {
  const { config } = deps
  let checked: CheckedCall
  try {
    checked = checkCall(deps, request, principal)
  } catch (refusal) {
    // The check may have refused the call because of rights that have changed since.
    const limits = await readLimitsUnlessStale(deps, principal)
    return { principal, callId, refusal, ...(limits && { limits }) }
  }
  const { preference } = checked
  const isAsync = preference.waitMs !== undefined
  const timeoutMs = isAsync ? ASYNC_MS_MAX : config.callTimeoutMs
  const limits = await acquireLimits(deps, principal, { callId, timeoutMs })
  const job = createJob(deps, { principal, checked, id: callId, now: limits.now, timeoutMs, isAsync })
  try {
    const queueing = await forecastAndJoin(deps, { ...checked, job })
    return { principal, limits, job, queueing, preference }
  } catch (refusal) {
    return { principal, callId, refusal, limits, taken: job }
  }
}

/**
 * Reads what the account has left with one round trip.
 *
 * @throws StaleRightsError if its rights have changed since the look-up that led to the refusal
 */
async function readLimitsUnlessStale(deps: AdmissionDeps, principal: Principal): Promise<LimitState | undefined> {
  return await deps.accountLimits.read(limitQuery(deps, principal, 0)).catch(async (error) => {
    // If Redis has no count of the month, it comes from Postgres, which may be away. Then the
    // headers are left out.
    if (error instanceof StaleRightsError || !(await isUpToDate(deps, principal))) throw new StaleRightsError()
    return undefined
  })
}

/** `now` is the time of Redis. */
export function createJob(
  { replies, config }: Pick<AdmissionDeps, 'replies' | 'config'>,
  call: {
    principal: Principal
    checked: CheckedTarget
    id: string
    now: number
    timeoutMs: number
    isAsync?: boolean
  },
): CallJob {
  const { principal, checked, id, now, timeoutMs, isAsync = false } = call
  const { api, endpoint, providerKey, parameters, extra, raw, scenario } = checked
  const credentialId = countedCredential(principal)
  return {
    v: 1,
    id,
    accountId: principal.accountId,
    ...(principal.shareGroup === principal.accountId ? {} : { group: principal.shareGroup }),
    ...(principal.keyId === undefined ? {} : { keyId: principal.keyId }),
    ...(principal.sessionId === undefined ? {} : { sessionId: principal.sessionId }),
    version: principal.version,
    ...(credentialId === undefined ? {} : { credentialId }),
    ...(providerKey === undefined ? {} : { providerKey }),
    mode: principal.mode,
    weight: WEIGHT_OF_TIER[principal.tier],
    slug: api.slug,
    endpoint: endpoint.path,
    ...(api.upstream.own ? { document: api.upstream.own.digest } : {}),
    parameters,
    extra,
    raw,
    isAsync,
    ...(isAsync ? { resultBytesMax: config.plans[PLAN_OF_TIER[principal.tier]].resultMegabytes * 1_000_000 } : {}),
    ...(scenario === undefined ? {} : { scenario }),
    replyTo: replies.stream,
    bundledReplies: true,
    limitsAcquiredAt: now,
    deadline: now + timeoutMs,
  }
}
