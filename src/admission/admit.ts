import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { SingleFlight } from '../async/single-flight.ts'
import type { Api, ApiEndpoint, Catalog } from '../catalog/catalog.ts'
import { countMonthUsage } from '../db/usage.ts'
import { GatewayError } from '../errors.ts'
import { readJsonBody } from '../http/json-body.ts'
import { isWellFormed } from '../http/well-formed.ts'
import {
  acquireLimits,
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
import { redisCall, wasNotSent } from '../redis/unavailable.ts'
import {
  type AuthenticationDeps,
  authenticateCall,
  forgetPrincipal,
  isUpToDate,
  type Principal,
} from './authenticate.ts'
import { bodyParameters, queryParameters } from './call-input.ts'
import { type ForecastDeps, forecastCall, type QueueTicket } from './forecast.ts'
import { type CallTarget, checkParameters } from './parameters.ts'
import { type Preference, readPreference } from './preference.ts'
import { chooseProviderKey } from './provider-key-choice.ts'
import { checkRights } from './rights.ts'

export interface AdmissionDeps extends AuthenticationDeps, ForecastDeps {
  catalog: Catalog
  replies: { stream: string }
  completions: Pick<CallCompletionBatcher, 'flush' | 'compensate'>
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
  const { api, endpoint, providerKey, parameters, extra, raw, scenario, preference } = checked
  const isAsync = preference.waitMs !== undefined
  const id = admission.callId
  const timeoutMs = isAsync ? Math.max(ASYNC_MS_MAX, config.callTimeoutMs) : config.callTimeoutMs
  const plan = config.plans[planOf(principal.tier)]
  const options = takeOptions(sources, principal, timeoutMs)
  // Who has its answer and sends the next call finds what that one held given back.
  sources.completions.flush(principal)
  const limits = await redisCall(() =>
    acquireLimits(sources.redis, {
      ...options,
      subject: principal,
      tier: principal.tier,
      limits: plan,
      callId: id,
    }).catch((error) => {
      if (!(error instanceof GatewayError || wasNotSent(error))) sources.completions.compensate(principal, id)
      throw error
    }),
  )
  if (limits === STALE) return STALE
  admission.limits = limits
  const job: CallJob = {
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
    isAsync,
    ...(scenario === undefined ? {} : { scenario }),
    replyTo: sources.replies.stream,
    enqueuedAt: limits.now,
    deadline: limits.now + timeoutMs,
  }
  try {
    const queued = await forecastCall(sources, { api, endpoint, job, weight: weightOf(principal.tier) })
    const { place, cacheOnlyMs } = queued
    Object.assign(job, place && { place }, cacheOnlyMs === undefined ? undefined : { cacheOnlyMs })
    return { principal, limits, job, queued, preference }
  } catch (error) {
    admission.limits = await refundLimits(sources.redis, principal, { callId: id, state: limits }).catch(() => {
      sources.completions.compensate(principal, id)
      return limits
    })
    throw error
  }
}

interface CheckedCall {
  api: Api
  endpoint: ApiEndpoint
  providerKey: CallJob['providerKey']
  parameters: Record<string, unknown>
  extra: [string, string][]
  raw: boolean
  scenario: string | undefined
  preference: Preference
}

/** All checks that need no round trip, in the order in which a caller is told of them. @throws GatewayError */
function checkCall(catalog: Catalog, request: FastifyRequest, principal: Principal): CheckedCall {
  const url = request.raw.url ?? ''
  const target = findEndpoint(catalog, url)
  const { api, endpoint } = target
  if (request.method !== 'GET' && request.method !== 'POST') {
    throw new GatewayError('METHOD_NOT_ALLOWED', { allow: ['GET', 'POST'] })
  }
  checkRights(api, principal)
  const given = [...queryParameters(splitUrl(url).query), ...bodyParameters(readBody(request))]
  const context = { now: Date.now(), callerAddress: request.ip }
  const { parameters, extra } = checkParameters(target, given, context)
  const raw = wantsRaw(request)
  const scenario = readScenario(request, principal)
  const preference = readPreference(request.headers)
  const providerKey = chooseProviderKey(api, principal)
  return { api, endpoint, providerKey, parameters, extra, raw, scenario, preference }
}

/** What the account has left, for the headers of a refusal that took nothing. */
export async function currentLimits(sources: AdmissionDeps, principal: Principal): Promise<LimitState | undefined> {
  const plan = sources.config.plans[planOf(principal.tier)]
  return await readLimits(sources.redis, { ...takeOptions(sources, principal, 0), subject: principal, limits: plan })
}

function takeOptions(
  { db, monthLoads }: AdmissionDeps,
  { accountId, keyId }: Principal,
  timeoutMs: number,
): Omit<LimitReading, 'subject' | 'limits'> {
  return {
    leaseMs: timeoutMs + LEASE_GRACE_MS,
    // Fails closed: without Redis' count and without the ledger nobody knows what is left.
    loadMonthUsed: (month) => monthLoads.run(`${accountId} ${month}`, () => countMonthUsage(db, accountId, month)),
    loadConnectionUsed: (month) =>
      monthLoads.run(`${accountId} ${keyId} ${month}`, () => countMonthUsage(db, accountId, month, keyId)),
  }
}

/**
 * Finds what `/v1/call/{apiSlug}/{endpoint}` names: each part decoded once must be a name of the catalog.
 *
 * @throws GatewayError API_NOT_FOUND, ENDPOINT_NOT_FOUND or INVALID_ENCODING
 */
export function findEndpoint(catalog: Catalog, url: string): CallTarget {
  const [slug = '', ...rest] = splitUrl(url).path.slice('/v1/call/'.length).split('/')
  const api = catalog.get(decodeSegment(slug))
  if (!api) throw new GatewayError('API_NOT_FOUND')
  const endpoint = rest.length === 1 ? api.endpoints.get(`/${decodeSegment(rest[0] ?? '')}`) : undefined
  if (!endpoint) {
    throw new GatewayError('ENDPOINT_NOT_FOUND', {
      message: `The API ${api.slug} has no such endpoint; it has ${[...api.endpoints.keys()].join(', ')}.`,
    })
  }
  return { api, endpoint }
}

/** The body of a call comes as bytes, so that it is looked at in its turn; of other routes it is parsed. */
function readBody({ headers, body }: FastifyRequest): unknown {
  if (!Buffer.isBuffer(body)) return body
  return body.length === 0 ? undefined : readJsonBody(headers, body)
}

function splitUrl(url: string): { path: string; query: string } {
  const mark = url.indexOf('?')
  return mark < 0 ? { path: url, query: '' } : { path: url.slice(0, mark), query: url.slice(mark + 1) }
}

function decodeSegment(segment: string): string {
  try {
    const decoded = decodeURIComponent(segment)
    if (isWellFormed(decoded)) return decoded
  } catch {
    // Said below, as for text that decodes to what no name can hold.
  }
  throw new GatewayError('INVALID_ENCODING')
}

const SCENARIO = /^(upstream-500|timeout|rate-limited|invalid|slow-\d{1,5})$/

/** `X-Gateway-Scenario` lets a test call fail on purpose. */
function readScenario(request: FastifyRequest, principal: Principal): string | undefined {
  const scenario = request.headers['x-gateway-scenario']
  if (scenario === undefined || principal.mode !== 'test') return undefined
  if (typeof scenario === 'string' && SCENARIO.test(scenario)) return scenario
  throw new GatewayError('INVALID_PARAMETER', {
    message: 'X-Gateway-Scenario must be upstream-500, timeout, rate-limited, invalid or slow-<ms>.',
    tokens: { header: 'X-Gateway-Scenario' },
  })
}

/**
 * Whether the upstream's JSON is wanted as it came.
 *
 * @throws GatewayError INVALID_PARAMETER for another value of our own header
 */
function wantsRaw({ headers }: FastifyRequest): boolean {
  const form = headers['x-gateway-response']
  if (form !== undefined && form !== 'raw') {
    throw new GatewayError('INVALID_PARAMETER', {
      message: 'X-Gateway-Response must be raw.',
      tokens: { header: 'X-Gateway-Response' },
    })
  }
  return (
    form === 'raw' ||
    (headers.accept ?? '').split(',').some((type) => /^\s*application\/vnd\.upstream\+json\s*(;|$)/i.test(type))
  )
}
