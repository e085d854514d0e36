import { cacheKeys } from '../cache/cache-key.ts'
import { isUsableWithoutUpstream, type ResponseCache } from '../cache/response-cache.ts'
import { capOf } from '../caps/call-cap.ts'
import { beginCap } from '../caps/permit.ts'
import { memorySince } from '../caps/redis-memory.ts'
import { joinLine, leaveLine, type Place, type Refusal, rebaseTags, type Waiting } from '../caps/wait-queue.ts'
import type { Api, ApiEndpoint } from '../catalog/catalog.ts'
import type { Caps } from '../catalog/upstream.ts'
import type { Db } from '../db/database.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { HealthCache } from '../health/health-watch.ts'
import type { CallJob } from '../queue/call-job.ts'
import { type CallQueues, priorityOf, rebasePriorities } from '../queue/call-queue.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { redisCall } from '../redis/unavailable.ts'

export interface ForecastDeps {
  redis: RedisConnection
  db: Db
  cache: ResponseCache
  queues: CallQueues
  /** Breakers, as this node follows them. */
  health: HealthCache
}

/** How a call goes into the queue. */
export interface QueueTicket {
  priority: number
  /** When its permit is expected, milliseconds from now. */
  etaMs: number
  /** For the job. */
  place?: { tag: number; weight: number }
  cacheOnlyMs?: number
  /** To leave the line with, when its caller does. */
  waiting: Waiting | undefined
}

/** Priority of calls that need no permit. */
const FIRST = 1

const REFUSAL_CODES: Record<Refusal['refused'] | 'down', ErrorCode> = {
  down: 'UPSTREAM_UNAVAILABLE',
  cap: 'UPSTREAM_CAP_EXHAUSTED',
  closed: 'UPSTREAM_RATE_LIMITED',
  overloaded: 'OVERLOADED',
}

/**
 * Forecasts a call's turn at its upstream before it is queued: it is queued only if its breaker is closed or due for a
 * trial, and if its permit comes before its deadline, by its fair place. Else a stored answer still serves it.
 *
 * @throws GatewayError UPSTREAM_UNAVAILABLE, UPSTREAM_CAP_EXHAUSTED, UPSTREAM_RATE_LIMITED or OVERLOADED, with when to come again
 */
export async function forecastCall(
  sources: ForecastDeps,
  api: Api,
  { endpoint }: ApiEndpoint,
  job: CallJob,
  weight: number,
): Promise<QueueTicket> {
  if (job.mode === 'test') return { priority: FIRST, etaMs: 0, waiting: undefined }
  const { scope, caps } = capOf(api, job)
  const keys = cacheKeys(endpoint, job, scope)
  const waiting: Waiting = {
    callId: job.id,
    accountId: job.accountId,
    weight,
    slug: job.slug,
    scope,
    flightKey: keys?.flight,
  }
  // Costs no round trip; a node that has heard nothing lets calls through, and the worker asks again.
  const downMs = sources.health.breakerWaitMs(api.slug)
  const joined = downMs
    ? { refused: 'down' as const, retryAfterMs: downMs }
    : await redisCall(() => join(sources, caps, waiting, job.deadline))
  if ('refused' in joined) {
    const entry = keys && (await sources.cache.get(keys.entry))
    if (entry && isUsableWithoutUpstream(entry, job.enqueuedAt)) {
      return { priority: FIRST, etaMs: 0, cacheOnlyMs: joined.retryAfterMs, waiting: undefined }
    }
    throw new GatewayError(REFUSAL_CODES[joined.refused], { retryAfterMs: joined.retryAfterMs })
  }
  const priority = joined.needsRebase ? await rebase(sources, waiting, joined.tag) : joined.priority
  const place = { tag: joined.tag, weight }
  return { priority, etaMs: joined.etaMs, place, waiting: joined.isFollower ? undefined : waiting }
}

async function join(sources: ForecastDeps, caps: Caps, waiting: Waiting, deadline: number): Promise<Place | Refusal> {
  for (let tries = 0; tries < 3; tries += 1) {
    const joined = await joinLine(sources.redis, waiting, caps, deadline)
    if (joined !== 'unknown') return joined
    await beginCap(sources.redis, waiting.slug, waiting.scope, await memorySince(sources.redis, sources.db))
  }
  throw new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 1_000 })
}

/** Tags grow for as long as a line never empties; priorities are bounded. @returns the priority of the tag from now on */
async function rebase({ redis, queues }: ForecastDeps, waiting: Waiting, tag: number): Promise<number> {
  const { slug, scope } = waiting
  try {
    const { base, hasMoved } = await redisCall(() => rebaseTags(redis, slug, scope))
    if (hasMoved) await redisCall(() => rebasePriorities(queues, slug, base))
    return priorityOf(tag, base)
  } catch (error) {
    await leaveLine(redis, waiting).catch(() => undefined)
    throw error
  }
}
