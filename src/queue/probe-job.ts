import { setTimeout as delay } from 'node:timers/promises'
import type { JobsOptions } from 'bullmq'
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/schema'
import { apiSlugOf } from '../catalog/fallback.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { upstreamKeys } from '../redis/keys.ts'
import type { CallQueues } from './call-queue.ts'

export const PROBE_JOB = 'probe'

/**
 * Id of the scheduler of an upstream's probes. It is the same in every process, so that there is
 * only one scheduler.
 */
export const probeScheduler = (slug: string): string => `probe-${slug}`

/** Name of the probe that is the half-open attempt at this time. */
export const halfOpenProbe = (halfOpenAt: number | undefined): string => `half-open-${halfOpenAt}`

/** A probe's job in words. BullMQ chooses the ids of a scheduler's jobs. */
export function probeTitle(jobId: string): string {
  if (jobId.startsWith('repeat:')) return 'scheduled probe'
  return /-half-open-[\d.]+$/.test(jobId) ? 'half-open attempt' : 'probe'
}

/** Makes a worker send the upstream's cheapest request. */
const ProbeJob = Type.Object({
  v: Type.Literal(1),
  slug: Type.String(),
  /** Whether the probe is sent even if calls already show the upstream's health. */
  isForced: Type.Optional(Type.Boolean()),
  /**
   * Whether a person requested it. It then does not wait for the end of an open breaker's pause.
   */
  skipsPause: Type.Optional(Type.Boolean()),
  /**
   * Whether only this probe may open the breaker, because calls cannot tell whether the upstream
   * hangs.
   */
  isDecisive: Type.Optional(Type.Boolean()),
  /**
   * Endpoint whose recorded call the probe makes. If this answer lacks a member, all answers of the
   * endpoint count as lacking it.
   */
  endpoint: Type.Optional(Type.String()),
  /** Id under which the operator API waits for the outcome. */
  outcomeId: Type.Optional(Type.String()),
})

export type ProbeJob = Static<typeof ProbeJob>

const validator = Compile(ProbeJob)

export const PROBE_JOB_OPTIONS = {
  attempts: 1,
  removeOnComplete: true,
  removeOnFail: { count: 10, age: 3_600 },
} satisfies JobsOptions

interface ProbeOptions extends Omit<ProbeJob, 'v' | 'slug'> {
  name: string
  delayMs?: number
  /**
   * For this reason, no further probe is scheduled within so many milliseconds, even if the first
   * has ended.
   */
  once?: [reason: string, withinMs: number]
}

/**
 * Schedules a probe. While a probe of the same upstream and name waits or runs, no second is added.
 */
export async function enqueueProbe(
  queues: CallQueues,
  slug: string,
  { name, delayMs = 0, once, ...how }: ProbeOptions,
): Promise<void> {
  const data: ProbeJob = { v: 1, slug, ...how }
  // A lane carries the probes of many upstreams.
  const deduplication = once && { deduplication: { id: `${slug}-${once[0]}`, ttl: once[1] } }
  const options = { ...PROBE_JOB_OPTIONS, delay: delayMs, jobId: `${slug}-${name}`, ...deduplication }
  await queues.of(apiSlugOf(slug)).add(PROBE_JOB, data, options)
}

/** @throws Error if it is not a probe of this version */
export function parseProbeJob(data: unknown): ProbeJob {
  if (validator.Check(data)) return data
  throw new Error('job data do not fit a probe of version 1')
}

export interface ProbeOutcome {
  /** HTTP status; null if there was no answer. */
  status: number | null
  /** Milliseconds at the upstream, without the wait for its cap. */
  ms: number
  /** Error code; null for a good answer. */
  code: string | null
  /** The result in words: `HTTP 200 in 87 ms`, `DNS: no such host`. */
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

/** @returns null if there was no outcome in time, because there was no worker or no permit */
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
