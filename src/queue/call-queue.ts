import { Queue } from 'bullmq'
import { type Memoized, memoize } from '../async/memoize.ts'
import { TickBatcher } from '../async/tick-batcher.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { channels, upstreamKeys } from '../redis/keys.ts'
import { type CallJob, parseCalls, SHARED_JOB_CALLS_MAX, toJobData } from './call-job.ts'
import { PRIORITY_MAX } from './wait-queue-entry.ts'

export const CALL_JOB = 'call'

/** The queues of an API node, one per upstream, opened when first used. */
export class CallQueues {
  readonly of: Memoized<[slug: string], Queue>
  readonly #sharedJobs = new TickBatcher<CallToQueue, string>(async (slug, calls) => await this.#addJob(slug, calls), {
    itemsMax: SHARED_JOB_CALLS_MAX,
  })

  constructor(redis: RedisConnection, log: Log) {
    this.of = memoize(
      (slug) => slug,
      (slug) => openQueue(slug, redis).on('error', (error) => log.debug({ err: error, slug }, 'queue failed')),
    )
  }

  /** Calls that may share a job do so with those of the same tick. @returns the id of the job @throws what Redis throws */
  async enqueue(queued: CallToQueue): Promise<string> {
    const { slug, id } = queued.call
    if (queued.mayShareJob) return await this.#sharedJobs.add(slug, queued)
    await this.#addJob(slug, [queued])
    return id
  }

  async #addJob(slug: string, queued: CallToQueue[]): Promise<string[]> {
    const calls = queued.map(({ call }) => call)
    // Adding the same id twice adds one job.
    const jobId = `${calls.length === 1 ? '' : 'shared_'}${calls[0]?.id}`
    const priority = Math.min(...queued.map((each) => each.priority))
    await this.of(slug).add(CALL_JOB, toJobData(calls), { jobId, priority })
    return queued.map(() => jobId)
  }

  async close(): Promise<void> {
    await Promise.all([...this.of.made.values()].map((queue) => queue.close()))
  }
}

export interface CallToQueue {
  call: CallJob
  /** The job with the lower number runs first; every job has one, because jobs without run before all others. */
  priority: number
  /** It needs no order of its own: its permit is free, or it goes without a ticket. */
  mayShareJob: boolean
}

function openQueue(slug: string, redis: RedisConnection): Queue {
  return new Queue(slug, {
    connection: redis,
    prefix: upstreamKeys.queuePrefix(slug),
    // Fails when Redis is away instead of waiting: the caller is answered 503.
    skipWaitingForReady: true,
    // Opening sends no command then: BullMQ would remember for ever that one failed.
    skipVersionCheck: true,
    streams: { events: { maxLen: 100 } },
    defaultJobOptions: {
      // Attempts are the worker's business, under the call's deadline.
      attempts: 1,
      removeOnComplete: true,
      removeOnFail: { count: 100, age: 3_600 },
    },
  })
}

/** Takes a call out of its queue while it waits in a job of its own, which is read in the same round trip: BullMQ also says that it removed a job that it does not know. @returns `isStarted`: a worker had it, or has handed it back; undefined when it was not there */
export async function removeCall(
  queues: CallQueues,
  slug: string,
  callId: string,
): Promise<{ isStarted: boolean } | undefined> {
  const queue = queues.of(slug)
  const [job, removed] = await Promise.all([queue.getJob(callId), queue.remove(callId)])
  return job && removed === 1 ? { isStarted: job.attemptsStarted > 0 } : undefined
}

export async function isJobWaiting(queues: CallQueues, slug: string, jobId: string): Promise<boolean> {
  return ['prioritized', 'waiting', 'delayed'].includes(await queues.of(slug).getJobState(jobId))
}

/** A fair tag as a job priority, counted from a base. */
export function priorityOf(tag: number, base: number): number {
  return Math.min(Math.max(1, Math.floor(tag - base) + 1), PRIORITY_MAX)
}

/** Counts priorities from a later base, for the calls of one bucket: each has a virtual time of its own. */
export async function rebasePriorities(
  queues: CallQueues,
  { slug, isOfBucket }: { slug: string; isOfBucket: (call: CallJob) => boolean },
  base: number,
): Promise<void> {
  for (const job of await queues.of(slug).getPrioritized()) {
    // Probes go last and validations of keys first, whatever the base is.
    if (job.name !== CALL_JOB) continue
    const priorities = tagsOf(job.data, isOfBucket).map((tag = base) => priorityOf(tag, base))
    if (priorities.length === 0) continue
    await job.changePriority({ priority: Math.min(job.priority, ...priorities) }).catch(() => undefined)
  }
}

/** Undefined without a ticket and for a job of a later version: these are due at once, like all from before the base. */
function tagsOf(data: unknown, isOfBucket: (call: CallJob) => boolean): (number | undefined)[] {
  try {
    return parseCalls(data)
      .filter(isOfBucket)
      .map(({ ticket }) => ticket?.tag)
  } catch {
    return [undefined]
  }
}

/** Tells all workers that nobody waits for a call any more. */
export async function announceCancel(redis: RedisConnection, slug: string, callId: string): Promise<void> {
  await redis.publish(channels.cancel, `${slug} ${callId}`)
}
