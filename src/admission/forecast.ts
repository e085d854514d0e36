import { type CacheKeys, cacheKeys } from '../cache/cache-key.ts'
import { isUsableWithoutUpstream, type ResponseCache } from '../cache/response-cache.ts'
import { refusalOf, refusalWithUnprovenKey } from '../caps/refusal.ts'
import type { UpstreamCaps } from '../caps/upstream-caps.ts'
import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api } from '../catalog/catalog.ts'
import { fallbackFor } from '../catalog/fallback.ts'
import { GatewayError } from '../errors.ts'
import type { HealthCache } from '../health/health-cache.ts'
import type { CallJob } from '../queue/call-job.ts'
import {
  bucketOf,
  type CapBucket,
  UNPROVEN_BUCKET,
  type WaitQueueEntry,
  waitQueueEntry,
} from '../queue/wait-queue-entry.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { upstreamKeys } from '../redis/keys.ts'
import { isUnacknowledged } from '../redis/redis-error.ts'
import type { KnownFromReplies } from './known-from-replies.ts'

export interface ForecastDeps {
  caps: UpstreamCaps
  cache: ResponseCache
  known: KnownFromReplies
  health: HealthCache
  redis: RedisConnection
}

interface ForecastCall {
  api: Api
  endpoint: ApiEndpoint
  job: CallJob
}

/** How a call is queued, and how to undo it. */
export interface Queueing {
  /** Until its permit is expected, milliseconds. */
  etaMs: number
  /** Values that the job of the call carries to the worker. */
  ofJob: Pick<CallJob, 'ticket' | 'cacheOnly'>
  /**
   * The endpoint's effect is `once`. If the call fails after it was queued, its request may have
   * been sent, and is never sent twice.
   */
  mustNotRepeat: boolean
  /** Undefined if answers are not shared. */
  keys?: CacheKeys | undefined
  /** Call it at the end of a call that has no ticket because its cap has room. */
  giveSpareRoomBack?: () => void
}

/**
 * Decides how a call is queued. A synchronous call joins no wait queue if its answer is stored or
 * on its way, or if the cap has room and its request may be sent twice. If the breaker is open or
 * the permit would be late, the call is refused, unless a stored answer or items fetched ahead can
 * answer it, or a fallback source while the source limits the gateway.
 * @throws GatewayError UPSTREAM_UNAVAILABLE, UPSTREAM_CAP_EXHAUSTED, UPSTREAM_RATE_LIMITED or
 *   OVERLOADED
 */
export async function forecastAndJoin(deps: ForecastDeps, call: ForecastCall): Promise<Queueing> {
  const { api, endpoint, job } = call
  const mustNotRepeat = endpoint.declaration.effect === 'once'
  if (job.mode === 'test') return { etaMs: 0, ofJob: {}, mustNotRepeat }
  const keys = cacheKeys(endpoint.declaration, job)
  const withoutTicket = { etaMs: 0, ofJob: {}, mustNotRepeat, keys }
  // An asynchronous call always joins the queue. A refusal by its worker would come after its
  // caller got the 202.
  if (keys && !job.isAsync && deps.known.hasAnswer(keys.answer)) return withoutTicket
  // The state of the breaker that this node knows, without a round trip. The worker checks it
  // again.
  // Undefined: the breaker allows requests. 0: a half-open attempt may be sent now.
  const breakerWaitMs = deps.health.breakerWaitMs(api.slug)
  // Spare room is only for a call that may be sent now and may run twice.
  const mayUseSpareRoom = breakerWaitMs === undefined && !job.isAsync && !mustNotRepeat && api.pausedMode === undefined
  const bucket = bucketOf(job)
  const giveSpareRoomBack = mayUseSpareRoom ? deps.known.takeRoom(api.slug, bucket) : undefined
  if (giveSpareRoomBack) {
    if (keys) deps.known.expectAnswer(keys.answer)
    return { ...withoutTicket, giveSpareRoomBack }
  }
  const joinedOrRefused = breakerWaitMs
    ? await downRefusal(deps, { api, bucket, breakerWaitMs })
    : await join(deps, waitQueueEntry(job, { coalescedKey: keys?.coalesced }), job.deadline)
  if ('reason' in joinedOrRefused) {
    if (await isStored(deps, keys, job)) {
      const { reason, retryAfterMs } = joinedOrRefused
      return { ...withoutTicket, ofJob: { cacheOnly: { reason, retryAfterMs } } }
    }
    if (!job.isAsync && (await isPooled(deps, call))) return withoutTicket
    if (joinedOrRefused.reason === 'closed' && mayFallBack(deps, call)) return withoutTicket
    const { code, ...details } = refusalOf(joinedOrRefused)
    throw new GatewayError(code, {
      ...details,
      ...(bucket === UNPROVEN_BUCKET ? refusalWithUnprovenKey(joinedOrRefused) : {}),
    })
  }
  const { tag, etaMs, kind } = joinedOrRefused
  // No other call counts on the answer of a call that must wait for its permit, because it may come
  // much later.
  if (keys && etaMs === 0) deps.known.expectAnswer(keys.answer)
  if (kind === 'follower') return { ...withoutTicket, etaMs }
  return { ...withoutTicket, etaMs, ofJob: { ticket: { tag, ...(kind === 'ahead' && { isAhead: true }) } } }
}

/**
 * The entry with which a queued call can be withdrawn from the wait queue, even if only its worker
 * joined; undefined if the call never joins.
 */
export function waitEntryOf(job: CallJob, keys: CacheKeys | undefined): WaitQueueEntry | undefined {
  if (job.mode === 'test' || job.cacheOnly) return undefined
  return waitQueueEntry(job, { coalescedKey: keys?.coalesced })
}

/**
 * The refusal of an open breaker, with the time until the cap does not refuse either. A fallback
 * source has a cap of its own.
 */
async function downRefusal(
  { caps, health }: ForecastDeps,
  { api, bucket, breakerWaitMs }: { api: Api; bucket: CapBucket; breakerWaitMs: number },
) {
  const cap = api.fallback ? undefined : await caps.of(api, bucket).read()
  const { lastFailure } = health.ofUpstream(api.slug)
  return { reason: 'down' as const, retryAfterMs: Math.max(breakerWaitMs, cap?.nextSlotMs ?? 0), lastFailure }
}

/** Whether a stored answer answers the call without a request. */
async function isStored({ cache }: ForecastDeps, keys: CacheKeys | undefined, job: CallJob): Promise<boolean> {
  const stored = keys && (await cache.get(keys.answer))
  return stored !== undefined && isUsableWithoutUpstream(stored, job.limitsAcquiredAt)
}

/**
 * Whether the worker can try the fallback source while the cap of the first source is closed.
 */
function mayFallBack({ health }: ForecastDeps, { api, job }: ForecastCall): boolean {
  const fallback = fallbackFor(api, job)
  return fallback !== undefined && !health.breakerWaitMsOfUpstream(fallback.source.slug)
}

/** Whether items fetched ahead answer the call, so that it needs no permit. */
async function isPooled({ redis }: ForecastDeps, { endpoint, job }: ForecastCall): Promise<boolean> {
  const { pool } = endpoint.declaration
  if (!pool || job.extra.length > 0) return false
  return (await redis.llen(upstreamKeys.pool(job.slug, pool.key(job.parameters)))) >= pool.take(job.parameters)
}

/**
 * Joins the wait queue. If the node loses Redis' reply, the call may be in the queue without the
 * node knowing it. It then leaves the queue, or its place delays other calls until its deadline.
 */
async function join(deps: ForecastDeps, waitEntry: WaitQueueEntry, deadline: number) {
  try {
    return await deps.caps.of(waitEntry, waitEntry.bucket).joinWaitQueue(waitEntry, deadline)
  } catch (error) {
    if (isUnacknowledged(error)) void deps.caps.leaveWaitQueue(waitEntry)
    throw error
  }
}
