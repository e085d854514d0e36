import { noteCallersLimited } from '../../src/health/record.ts'
import { enqueueProbe } from '../../src/queue/probe-job.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { RETRY_AFTER_MS_MAX } from './rate-headers.ts'
import type { UpstreamDeps } from './upstream-deps.ts'

/** Accounts remembered for one API: past it those go whose wait ends first. */
const CALLERS_MAX = 1_000

/** Probes use the cap: callers must not be able to use it up by them. Milliseconds. */
const PROBE_EVERY_MS = 300_000

type Deps = Pick<UpstreamDeps, 'redis' | 'queues' | 'clock' | 'health' | 'log'>

/**
 * Remembers an account whose undeclared parameters met a limit: these may be why, so that the limit
 * is the account's alone. A probe finds out whether the limit is everybody's. Without Redis nothing
 * is remembered, and nothing is sent either.
 *
 * @param forMs how long the upstream limits, milliseconds
 */
export async function limitCaller(
  { redis, queues, clock, health, log }: Deps,
  { slug, accountId }: { slug: string; accountId: string },
  forMs: number,
): Promise<void> {
  const [key, now] = [upstreamKeys.limitedCallers(slug), clock.now()]
  try {
    await redis
      .multi()
      .zremrangebyscore(key, '-inf', now)
      .zadd(key, now + Math.min(forMs, RETRY_AFTER_MS_MAX), accountId)
      .zremrangebyrank(key, 0, -CALLERS_MAX - 1)
      .pexpire(key, RETRY_AFTER_MS_MAX)
      .exec()
    await noteCallersLimited(redis, slug, now + RETRY_AFTER_MS_MAX)
    // The next call of this process knows it at once.
    await health.read(slug)
    await enqueueProbe(queues, slug, {
      name: `limit-${Math.floor(now)}`,
      isForced: true,
      once: ['limit', PROBE_EVERY_MS],
    })
  } catch (error) {
    log.warn({ err: error, slug }, 'failed to remember a caller whose parameters met a limit')
  }
}

/**
 * How long the account may send the upstream no undeclared parameters, milliseconds; 0: it may.
 * Redis is read only while accounts are remembered for the upstream.
 *
 * @throws what Redis throws
 */
export async function limitedMs(
  { redis, clock, health }: Pick<UpstreamDeps, 'redis' | 'clock' | 'health'>,
  { slug, accountId }: { slug: string; accountId: string },
): Promise<number> {
  if (!health.hasLimitedCallers(slug)) return 0
  const until = await redis.zscore(upstreamKeys.limitedCallers(slug), accountId)
  return until === null ? 0 : Math.max(0, Math.ceil(Number(until) - clock.now()))
}

/** A plain request was answered well: what callers met was no limit of the gateway's. */
export async function forgetLimitedCallers(
  { redis, log }: Pick<UpstreamDeps, 'redis' | 'log'>,
  slug: string,
): Promise<void> {
  await redis
    .del(upstreamKeys.limitedCallers(slug))
    .catch((error) => log.warn({ err: error, slug }, 'failed to forget the callers whose parameters met a limit'))
}
