import { noteCallersLimited } from '../../src/health/record.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { enqueueProbe } from '../../src/queue/probe-job.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { RETRY_AFTER_MS_MAX } from './rate-headers.ts'
import type { UpstreamDeps } from './upstream-deps.ts'

/** Callers remembered for one API. Beyond this number the callers with the earliest times go. */
const CALLERS_MAX = 1_000

/** Probes use the cap: callers must not be able to use it up by them. Milliseconds. */
const PROBE_EVERY_MS = 300_000

type Deps = Pick<UpstreamDeps, 'redis' | 'queues' | 'clock' | 'health' | 'log'>

/** Whose requests an upstream limits, or may limit. */
export interface LimitedCaller {
  slug: string
  /** As `upstreamKeys.limitedCallers` names callers. */
  name: string
}

/** The account of a call, with or without undeclared parameters. */
export function limitedCallerOf(
  slug: string,
  { accountId, extra }: Pick<CallJob, 'accountId' | 'extra'>,
): LimitedCaller {
  return extra.length > 0 ? { slug, name: accountId } : plainCaller(slug, accountId)
}

/** An account, for its requests without undeclared parameters. */
export function plainCaller(slug: string, accountId: string): LimitedCaller {
  return { slug, name: `plain ${accountId}` }
}

/** How long one caller's reports of a limit count for all, and for how long they then do not. */
const BELIEVED_MS = 60_000
const DOUBTED_MS = 3_600_000

/** Stands among the callers for a probe that met a limit. No caller has this name. */
const PROBE = 'probe'

/**
 * Notes that a caller's request without undeclared parameters met a limit. A caller's own values
 * may be why, so its reports close the cap for a minute in an hour, or until the next probe may be
 * made if a probe has met a limit too. Many accounts may be a single person, so this counts by
 * `voterOf`. The limit that follows is for each account alone, because others share its networks.
 *
 * @returns whether the report counts for all callers. If Redis does not answer, it does
 */
export async function noteLimitReport(
  { redis, clock, log }: Pick<Deps, 'redis' | 'clock' | 'log'>,
  slug: string,
  voter: string,
): Promise<boolean> {
  const [key, now] = [upstreamKeys.limitReports(slug), clock.now()]
  try {
    const replies = await redis
      .multi()
      .zremrangebyscore(key, '-inf', now - DOUBTED_MS)
      .zadd(key, 'NX', now, voter)
      .zscore(key, voter)
      .zscore(key, PROBE)
      .zremrangebyrank(key, 0, -CALLERS_MAX - 1)
      .pexpire(key, DOUBTED_MS)
      .exec()
    const [firstAt, confirmedAt] = [replies?.[2]?.[1] ?? now, replies?.[3]?.[1] ?? Number.NEGATIVE_INFINITY]
    return now - Number(firstAt) < BELIEVED_MS || now - Number(confirmedAt) < PROBE_EVERY_MS
  } catch (error) {
    log.warn({ err: error, slug }, 'failed to note that a caller met a limit')
    return true
  }
}

/**
 * A probe met a limit too: what callers reported was right. The cap follows the answer to the
 * probe, so nobody is limited alone any more.
 */
export async function trustLimitReports(
  deps: Pick<Deps, 'redis' | 'clock' | 'health' | 'log'>,
  slug: string,
): Promise<void> {
  const { redis, clock, log } = deps
  const key = upstreamKeys.limitReports(slug)
  await forgetLimitedCallers(deps, slug)
  try {
    await redis.multi().del(key).zadd(key, clock.now(), PROBE).pexpire(key, DOUBTED_MS).exec()
  } catch (error) {
    log.warn({ err: error, slug }, 'failed to note that a probe met a limit')
  }
}

/**
 * Remembers a caller whose parameters met a limit: these may be why, so that the limit is the
 * caller's alone. A probe finds out whether the limit is everybody's. Without Redis nothing
 * is remembered, and nothing is sent either.
 *
 * @param forMs how long the upstream limits, milliseconds
 */
export async function limitCaller(
  { redis, queues, clock, health, log }: Deps,
  { slug, name }: LimitedCaller,
  forMs: number,
): Promise<void> {
  const [key, now] = [upstreamKeys.limitedCallers(slug), clock.now()]
  try {
    await redis
      .multi()
      .zremrangebyscore(key, '-inf', now)
      .zadd(key, now + Math.min(forMs, RETRY_AFTER_MS_MAX), name)
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
 * How long the caller may send the upstream no such requests, milliseconds; 0: it may. Redis is
 * read only while callers are remembered for the upstream.
 *
 * @throws what Redis throws
 */
export async function limitedMs(
  { redis, clock, health }: Pick<UpstreamDeps, 'redis' | 'clock' | 'health'>,
  { slug, name }: LimitedCaller,
): Promise<number> {
  if (!health.hasLimitedCallers(slug)) return 0
  const until = await redis.zscore(upstreamKeys.limitedCallers(slug), name)
  return until === null ? 0 : Math.max(0, Math.ceil(Number(until) - clock.now()))
}

/**
 * A plain request was answered well: what callers met was no limit of the gateway's. Calls need not
 * look for limited callers any more.
 */
export async function forgetLimitedCallers(
  { redis, health, log }: Pick<Deps, 'redis' | 'health' | 'log'>,
  slug: string,
): Promise<void> {
  try {
    // First, so that a caller who is limited meanwhile is not overlooked.
    if (health.hasLimitedCallers(slug)) await noteCallersLimited(redis, slug, 0)
    await redis.del(upstreamKeys.limitedCallers(slug))
  } catch (error) {
    log.warn({ err: error, slug }, 'failed to forget the callers whose parameters met a limit')
  }
}
