import { setTimeout as delay } from 'node:timers/promises'
import type { JobsOptions } from 'bullmq'
import { apiSlugOf } from '../catalog/fallback.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { upstreamKeys } from '../redis/keys.ts'
import type { CallQueues } from './call-queue.ts'

export const PROBE_JOB = 'probe'

/** Id of the scheduler that makes an upstream's probes: one, however many processes create it. */
export const probeScheduler = (slug: string): string => `probe-${slug}`

/** Name of the probe that is the half-open attempt of this time. */
export const halfOpenProbe = (halfOpenAt: number | undefined): string => `half-open-${halfOpenAt}`

/** What the job of a probe is, in words. BullMQ gives the jobs of a scheduler their ids. */
export function probeTitle(jobId: string): string {
  if (jobId.startsWith('repeat:')) return 'scheduled probe'
  return /-half-open-[\d.]+$/.test(jobId) ? 'half-open attempt' : 'probe'
}

/** Has a worker send the upstream's cheapest request. */
export interface ProbeJob {
  v: 1
  slug: string
  /** The probe is sent even if calls show the health already. */
  isForced?: boolean
  /** A person asked for it: it does not wait for the end of an open breaker's pause. */
  skipsPause?: boolean
  /** Only this probe may open the breaker: calls could not tell whether the upstream hangs. */
  isDecisive?: boolean
  /**
   * The probe makes the recorded call of this endpoint: what its answer lacks, all answers lack.
   */
  endpoint?: string
  /** The operator API waits for the outcome, under this id. */
  outcomeId?: string
}

export const PROBE_JOB_OPTIONS = {
  attempts: 1,
  removeOnComplete: true,
  removeOnFail: { count: 10, age: 3_600 },
} satisfies JobsOptions

/**
 * Schedules a probe. While a probe of the same upstream and name waits or runs, there is no second.
 *
 * @param once for this reason no further probe is scheduled within so many milliseconds, although
 *   the first has run
 */
export async function enqueueProbe(
  queues: CallQueues,
  slug: string,
  {
    name,
    isForced,
    skipsPause,
    isDecisive,
    delayMs = 0,
    endpoint,
    outcomeId,
    once,
  }: Omit<ProbeJob, 'v' | 'slug'> & { name: string; delayMs?: number; once?: [reason: string, withinMs: number] },
): Promise<void> {
  const data: ProbeJob = {
    v: 1,
    slug,
    ...(isForced ? { isForced } : {}),
    ...(skipsPause ? { skipsPause } : {}),
    ...(isDecisive ? { isDecisive } : {}),
    ...(endpoint ? { endpoint } : {}),
    ...(outcomeId ? { outcomeId } : {}),
  }
  // A lane carries the probes of many upstreams.
  const deduplication = once && { deduplication: { id: `${slug}-${once[0]}`, ttl: once[1] } }
  const options = { ...PROBE_JOB_OPTIONS, delay: delayMs, jobId: `${slug}-${name}`, ...deduplication }
  await queues.of(apiSlugOf(slug)).add(PROBE_JOB, data, options)
}

/** @throws Error if it is no probe of this version */
export function parseProbeJob(data: unknown): ProbeJob {
  const { v, slug, isForced, skipsPause, isDecisive, endpoint, outcomeId } = Object(data)
  if (v !== 1 || typeof slug !== 'string') throw new Error('job data do not fit a probe of version 1')
  return {
    v,
    slug,
    isForced: isForced === true,
    skipsPause: skipsPause === true,
    isDecisive: isDecisive === true,
    ...(typeof endpoint === 'string' ? { endpoint } : {}),
    ...(typeof outcomeId === 'string' ? { outcomeId } : {}),
  }
}

export interface ProbeOutcome {
  /** Null if no answer came. */
  status: number | null
  /** Time at the upstream, without the wait for its cap. */
  ms: number
  /** Null when the answer was good. */
  code: string | null
  /** `HTTP 200 in 87 ms`, `DNS: no such host`. */
  words: string
}

const OUTCOME_KEPT_SECONDS = 60

/** Poll interval of the operator API, milliseconds. */
const LOOK_EVERY_MS = 150

export async function writeProbeOutcome(
  redis: RedisConnection,
  { slug, id }: { slug: string; id: string },
  outcome: ProbeOutcome,
): Promise<void> {
  await redis.set(upstreamKeys.probeOutcome(slug, id), JSON.stringify(outcome), 'EX', OUTCOME_KEPT_SECONDS)
}

/** @returns null if nothing came in time: no worker, or no permit */
export async function awaitProbeOutcome(
  redis: RedisConnection,
  { slug, id }: { slug: string; id: string },
  waitMs: number,
): Promise<ProbeOutcome | null> {
  const endsAt = performance.now() + waitMs
  while (performance.now() < endsAt) {
    const text = await redis.get(upstreamKeys.probeOutcome(slug, id))
    if (text !== null) return JSON.parse(text) as ProbeOutcome
    await delay(LOOK_EVERY_MS)
  }
  return null
}
