import type { JobsOptions } from 'bullmq'
import type { CallQueues } from './call-queue.ts'

/** Name of a probe among an upstream's jobs. */
export const PROBE_JOB = 'probe'

/** Id of the scheduler that makes an upstream's probes: one, however many processes ask for it. */
export const PROBE_SCHEDULER = 'probe'

/** Probes go last: the largest priority BullMQ has. */
export const PROBE_PRIORITY = 2_097_151

/** Asks a worker to send the upstream's cheapest request and to see what comes. */
export interface ProbeJob {
  v: 1
  slug: string
  /** It is made even where traffic shows the health, or the breaker's pause is not over. */
  isForced?: boolean
}

export const PROBE_JOB_OPTIONS = {
  attempts: 1,
  priority: PROBE_PRIORITY,
  removeOnComplete: true,
  removeOnFail: { count: 10, age: 3_600 },
} satisfies JobsOptions

/** Asks for one probe now or later; while one of the same name waits or runs, there is no second. */
export async function enqueueProbe(
  queues: CallQueues,
  slug: string,
  { name, isForced, delayMs = 0 }: { name: string; isForced?: boolean; delayMs?: number },
): Promise<void> {
  const data: ProbeJob = { v: 1, slug, ...(isForced ? { isForced } : {}) }
  await queues.of(slug).add(PROBE_JOB, data, { ...PROBE_JOB_OPTIONS, delay: delayMs, jobId: name })
}

/** @throws Error when it is no probe of this version */
export function parseProbeJob(data: unknown): ProbeJob {
  const { v, slug, isForced } = Object(data)
  if (v !== 1 || typeof slug !== 'string') throw new Error('job data do not fit a probe of version 1')
  return { v, slug, isForced: isForced === true }
}
