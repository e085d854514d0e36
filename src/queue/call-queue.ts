import { Queue } from 'bullmq'
import { Batcher, type Items } from '../async/batcher.ts'
import { type Memoized, memoize } from '../async/memoize.ts'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { channels } from '../redis/keys.ts'
import { type CallJob, SHARED_JOB_CALLS_MAX, toJobData } from './call-job.ts'
import { type Lane, sharedLaneOf, sharedLanes } from './lanes.ts'

export const CALL_JOB = 'call'

/** The lanes of a process, each opened when it is first used. */
export class CallQueues {
  readonly #queues: Memoized<[lane: Lane], Queue>
  readonly #laneOf: (slug: string) => Lane
  readonly #sharedJobs = new Batcher<CallJob, string>(this.#addJob.bind(this), { itemsMax: SHARED_JOB_CALLS_MAX })

  /** @param laneOf returns the lane that carries the calls of an API now */
  constructor(redis: RedisConnection, log: Log, laneOf?: (slug: string) => Lane) {
    const lanes = sharedLanes(redis)
    this.#laneOf = laneOf ?? ((slug) => sharedLaneOf(lanes, slug))
    this.#queues = memoize(
      ({ prefix, name }) => `${prefix}:${name}`,
      (lane) =>
        openQueue(lane, redis).on('error', (error) => log.debug({ err: error, lane: lane.name }, 'queue failed')),
    )
  }

  /** The BullMQ queue of the lane that carries the calls of an API now. */
  readonly of = (slug: string): Queue => this.#queues(this.#laneOf(slug))

  /** The queues of the lanes that carry the calls of these APIs now, without duplicates. */
  queuesOf(slugs: Iterable<string>): Queue[] {
    return [...new Set([...slugs].map((slug) => this.of(slug)))]
  }

  /**
   * Adds a call to its lane. Calls of the same tick that may share a job travel in one job,
   * whatever their APIs.
   *
   * @returns the id of the job
   * @throws what Redis throws
   */
  async enqueue({ call, mayShareJob }: CallToQueue): Promise<string> {
    if (mayShareJob) return await this.#sharedJobs.add(this.of(call.slug).qualifiedName, call)
    await this.#addJob([call])
    return call.id
  }

  /** @returns the id of the job for each call; the job of a single call has the call's id */
  async #addJob(calls: Items<CallJob>): Promise<string[]> {
    const [first] = calls
    // Adding the same id twice adds only one job.
    const jobId = calls.length === 1 ? first.id : `shared_${first.id}`
    await this.of(first.slug).add(CALL_JOB, toJobData(calls), { jobId })
    return calls.map(() => jobId)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.made.values()].map((queue) => queue.close()))
  }
}

export interface CallToQueue {
  call: CallJob
  /**
   * Whether the call may share a job. A call with a job of its own can be removed from its lane.
   */
  mayShareJob: boolean
}

function openQueue({ name, prefix }: Lane, redis: RedisConnection): Queue {
  return new Queue(name, {
    connection: redis,
    prefix,
    // Fails at once while Redis is away, so that the caller gets 503.
    skipWaitingForReady: true,
    // Opening sends no command then, because BullMQ would remember its failure for ever.
    skipVersionCheck: true,
    streams: { events: { maxLen: 100 } },
    defaultJobOptions: {
      // The worker itself repeats attempts, within the call's deadline.
      attempts: 1,
      removeOnComplete: true,
      removeOnFail: { count: 100, age: 3_600 },
    },
  })
}

/**
 * Takes a call out of its queue while it waits in a job of its own. Reads the job in the same round
 * trip, because BullMQ reports success even for a job that it does not know.
 *
 * @returns `isStarted`: whether a worker had it, or has returned it; undefined if it was not in the
 *   queue
 */
export async function removeCall(lane: Queue, callId: string): Promise<{ isStarted: boolean } | undefined> {
  const [job, removed] = await Promise.all([lane.getJob(callId), lane.remove(callId)])
  return job && removed === 1 ? { isStarted: job.attemptsStarted > 0 } : undefined
}

export async function isJobWaiting(lane: Queue, jobId: string): Promise<boolean> {
  return ['waiting', 'delayed'].includes(await lane.getJobState(jobId))
}

/** Tells all workers that nobody waits for a call now. */
export async function announceCancel(redis: RedisConnection, slug: string, callId: string): Promise<void> {
  await redis.publish(channels.cancel, `${slug} ${callId}`)
}
