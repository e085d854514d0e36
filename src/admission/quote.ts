import { setTimeout as delay } from 'node:timers/promises'
import { cacheKeys } from '../cache/cache-key.ts'
import { stalenessMs } from '../cache/response-cache.ts'
import type { CapState } from '../caps/replies.ts'
import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import type { Allowance, Quote } from '../catalog/catalog-schema.ts'
import { GatewayError } from '../errors.ts'
import type { LimitState } from '../limits/limit-state.ts'
import { isTierAtLeast } from '../limits/plans.ts'
import { bucketOf, type CapBucket } from '../queue/wait-queue-entry.ts'
import type { AdmissionDeps } from './admit.ts'
import { readLimits } from './answer-limits.ts'
import type { Principal } from './authenticate.ts'
import { requireServed, type ServedDeps, waitsForOperator } from './check-call.ts'
import { tightestMinute } from './rate-limit-headers.ts'
import { chooseProviderKey } from './rights.ts'

/**
 * Longest wait of an answer for a quote, milliseconds. Fails open: the answer is sent without it.
 */
const READ_MS_MAX = 250

/** What the credential has left; undefined if it cannot be read in time. */
export async function readAllowance(
  deps: AdmissionDeps,
  principal: Principal,
): Promise<{ allowance: Allowance; limits: LimitState } | undefined> {
  const limits = await inTime(readLimits(deps, principal))
  return limits && { allowance: allowanceOf(limits), limits }
}

/**
 * What a call of an API would meet now: the checks of admission in their order, without taking
 * anything. All readings are sent together and cost one round trip. Undefined if they cannot be
 * read in time.
 */
export async function readQuote(
  deps: AdmissionDeps,
  principal: Principal,
  { api, endpoints }: { api: Api; endpoints: ApiEndpoint[] },
): Promise<{ quote: Omit<Quote, 'health'>; limits: LimitState } | undefined> {
  const access = accessTo(deps, api, principal)
  const isLive = principal.mode === 'live'
  const read = await inTime(
    Promise.all([
      readLimits(deps, principal),
      isLive && access.bucket !== undefined ? deps.caps.of(api, access.bucket).read() : undefined,
      isLive ? storedOf(deps, principal, { api, endpoints }) : [],
    ]),
  )
  const [limits, cap, stored] = read ?? []
  if (!limits || !stored) return undefined
  const breakerWaitMs = isLive ? (deps.health.breakerWaitMs(api.slug) ?? 0) : 0
  const limit = access.limitedBy
    ? { waitMs: null, limitedBy: access.limitedBy }
    : (accountLimit(limits) ?? operatorLimit(deps, api) ?? sourceLimit(breakerWaitMs, cap))
  return { quote: { ...limit, ...allowanceOf(limits), stored }, limits }
}

async function inTime<T>(reading: Promise<T>): Promise<T | undefined> {
  return await Promise.race([reading.catch(() => undefined), delay(READ_MS_MAX, undefined, { ref: false })])
}

/** Whether the account may call the API at all, and the cap against which its requests count. */
function accessTo(
  deps: ServedDeps,
  api: Api,
  principal: Principal,
): { limitedBy?: NonNullable<Quote['limitedBy']>; bucket?: CapBucket } {
  const { tier, allowance, missingForLiveCalls: missing, mode } = principal
  if (allowance?.apis && !allowance.apis.includes(api.slug)) return { limitedBy: 'credential' }
  if (missing && mode === 'live') return { limitedBy: 'account' }
  if (!isTierAtLeast(tier, api.tierRequired)) return { limitedBy: 'plan' }
  try {
    const bucket = bucketOf({ providerKey: chooseProviderKey(api, principal) })
    requireServed(deps, api)
    return { bucket }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return { limitedBy: error.code.startsWith('PROVIDER_KEY') ? 'provider-key' : 'operator' }
  }
}

type Limit = Pick<Quote, 'waitMs' | 'limitedBy'>

/**
 * The first limit that refuses, and the time until none refuses. Nobody knows when a call in flight
 * will end.
 */
function accountLimit(limits: LimitState): Limit | undefined {
  const { minuteLeft, monthLeft, inFlightLeft } = allowanceOf(limits)
  if (inFlightLeft === 0) return { waitMs: null, limitedBy: 'in-flight' }
  const minuteMs = minuteLeft === 0 ? tightestMinute(limits).resetMs : 0
  const monthMs = monthLeft === 0 ? (limits.month?.resetMs ?? 0) : 0
  const waitMs = Math.ceil(Math.max(minuteMs, monthMs))
  if (minuteLeft === 0) return { waitMs, limitedBy: 'minute' }
  return monthLeft === 0 ? { waitMs, limitedBy: 'month' } : undefined
}

function operatorLimit(deps: ServedDeps, api: Api): Limit | undefined {
  return waitsForOperator(deps, api) ? { waitMs: null, limitedBy: 'operator' } : undefined
}

function sourceLimit(breakerWaitMs: number, cap: CapState | undefined): Limit {
  const waitMs = Math.max(0, Math.ceil(breakerWaitMs), Math.ceil(cap?.nextSlotMs ?? 0))
  if (breakerWaitMs > 0) return { waitMs, limitedBy: 'health' }
  return { waitMs, limitedBy: waitMs > 0 ? 'source' : null }
}

function allowanceOf(limits: LimitState): Allowance {
  const { plan, month, credential, inFlight } = limits
  const leftOf = (own: { max: number; used: number } | undefined) =>
    own ? own.max - own.used : Number.POSITIVE_INFINITY
  const { max, used } = tightestMinute(limits)
  return {
    minuteLeft: Math.max(0, max - used),
    monthLeft: month ? Math.max(0, Math.min(plan.perMonth - month.used, leftOf(credential?.month))) : null,
    inFlightLeft: Math.max(0, Math.min(plan.inFlight - inFlight, leftOf(credential?.inFlight))),
  }
}

/** Paths of the endpoints whose answer to a call without parameters is stored and fresh. */
async function storedOf(
  { cache, clock }: AdmissionDeps,
  { accountId }: Principal,
  { api: { slug, upstream }, endpoints }: { api: Api; endpoints: ApiEndpoint[] },
): Promise<string[]> {
  const document = upstream.own?.digest
  const found = await Promise.all(
    endpoints.map(async ({ path, declaration: endpoint, parameters: declared }) => {
      if (declared.some(({ required }) => required)) return []
      const defaults = declared.flatMap(({ name, schema }) =>
        schema.default === undefined ? [] : [[name, schema.default] as const],
      )
      const now = clock.now()
      const given = Object.fromEntries(defaults)
      const parameters = endpoint.complete?.(given, { now }) ?? given
      const call = { slug, endpoint: path, parameters, extra: [], raw: false, accountId, ...(document && { document }) }
      const keys = cacheKeys(endpoint, call)
      const entry = keys && (await cache.get(keys.answer))
      return entry && stalenessMs(entry, now) <= 0 ? [path] : []
    }),
  )
  return found.flat()
}
