import { cacheKeys } from '../cache/cache-key.ts'
import { isUsableWithoutUpstream, type ResponseCache } from '../cache/response-cache.ts'
import { bucketOf } from '../caps/bucket.ts'
import type { QueueRefusal } from '../caps/cap.ts'
import type { UpstreamCaps } from '../caps/upstream-caps.ts'
import type { Api, ApiEndpoint } from '../catalog/catalog.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { HealthCache } from '../health/health-watch.ts'
import type { CallJob, QueueTicket } from '../queue/call-job.ts'
import { type CallQueues, priorityOf, rebasePriorities } from '../queue/call-queue.ts'
import { type QueueEntry, queueMember } from '../queue/queue-entry.ts'

export interface ForecastDeps {
  caps: UpstreamCaps
  cache: ResponseCache
  queues: CallQueues
  /** Breakers, as this node follows them. */
  health: HealthCache
}

/** A call whose parameters and limits are checked. */
export interface ForecastCall {
  api: Api
  endpoint: ApiEndpoint
  job: CallJob
  /** Share by plan. */
  weight: number
}

/** How a call goes into the queue. */
export interface Forecast {
  /** Of its job; 1 runs first. */
  priority: number
  /** When its permit is expected, milliseconds from now. */
  etaMs: number
  /** For the job, as `CallJob` has them. */
  ticket?: QueueTicket
  cacheOnlyMs?: number
  /** Nothing waits for the upstream, so that the call may share a job with others. */
  mayShareJob: boolean
  /** Its entry in the wait queue, to withdraw it with; undefined where it has none. */
  waiting: QueueEntry | undefined
}

/** Priority of calls that need no permit. */
const FIRST = 1

const REFUSAL_CODES: Record<QueueRefusal['refused'] | 'down', ErrorCode> = {
  down: 'UPSTREAM_UNAVAILABLE',
  cap: 'UPSTREAM_CAP_EXHAUSTED',
  share: 'UPSTREAM_CAP_EXHAUSTED',
  closed: 'UPSTREAM_RATE_LIMITED',
  overloaded: 'OVERLOADED',
}

const SHARE_SPENT = 'Your fair share of the upstream API is used up while others ask for it too.'

/**
 * Forecasts when a call's upstream can take it, before the call is queued: it is queued only if the breaker is closed or
 * due for a probe, and if its permit comes before its deadline. Else a stored answer still serves it.
 *
 * @throws GatewayError UPSTREAM_UNAVAILABLE, UPSTREAM_CAP_EXHAUSTED, UPSTREAM_RATE_LIMITED or OVERLOADED, with when to come again
 */
export async function forecastCall(
  deps: ForecastDeps,
  { api, endpoint, job, weight }: ForecastCall,
): Promise<Forecast> {
  // A call held by a pause stays in a job of its own, so that it can be taken back unsent.
  const isShareable = !job.isAsync && endpoint.endpoint.idempotent !== false && api.pausedMode === undefined
  if (job.mode === 'test') return { priority: FIRST, etaMs: 0, mayShareJob: isShareable, waiting: undefined }
  const bucket = bucketOf(job)
  const keys = cacheKeys(endpoint.endpoint, job, bucket)
  const waiting: QueueEntry = {
    ...queueMember(job),
    weight,
    slug: job.slug,
    bucket,
    coalescedKey: keys?.coalesced,
  }
  // Costs no round trip. Without news of the breaker the node lets calls through; the worker checks it again.
  const downMs = deps.health.breakerWaitMs(api.slug)
  const joined = downMs
    ? { refused: 'down' as const, retryAfterMs: downMs }
    : await deps.caps.of(api, bucket).joinQueue(waiting, job.deadline)
  if ('refused' in joined) {
    const entry = keys && (await deps.cache.get(keys.entry))
    if (entry && isUsableWithoutUpstream(entry, job.enqueuedAt)) {
      return { priority: FIRST, etaMs: 0, cacheOnlyMs: joined.retryAfterMs, mayShareJob: false, waiting: undefined }
    }
    const { refused, retryAfterMs } = joined
    throw new GatewayError(REFUSAL_CODES[refused], {
      retryAfterMs,
      ...(refused === 'share' ? { message: SHARE_SPENT } : {}),
    })
  }
  const priority = joined.needsRebase ? await rebase(deps, waiting, joined.tag) : joined.priority
  const mayShareJob = isShareable && joined.etaMs === 0
  const ticket = { tag: joined.tag, weight }
  return { priority, etaMs: joined.etaMs, ticket, mayShareJob, waiting: joined.isFollower ? undefined : waiting }
}

/** Tags grow while a queue never empties; priorities are bounded. @returns the priority of the tag from now on */
async function rebase({ caps, queues }: ForecastDeps, waiting: QueueEntry, tag: number): Promise<number> {
  const { slug, bucket } = waiting
  const cap = caps.of({ slug }, bucket)
  try {
    const { base, hasMoved } = await cap.rebaseTags()
    if (hasMoved) await rebasePriorities(queues, slug, base)
    return priorityOf(tag, base)
  } catch (error) {
    await cap.leaveQueue(waiting).catch(() => undefined)
    throw error
  }
}
