import { Queue } from 'bullmq'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { channels, upstreamKeys } from '../redis/keys.ts'
import { type CallJob, parseCallJob } from './call-job.ts'

/** Name of a call among an upstream's jobs. */
export const CALL_JOB = 'call'

/** The queues of an API node, one per upstream, opened when first used. */
export class CallQueues {
  readonly #redis: RedisConnection
  readonly #log: Log
  readonly #queues = new Map<string, Queue>()

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  /** The queue of an upstream. */
  of(slug: string): Queue {
    const known = this.#queues.get(slug)
    if (known) return known
    const queue = openQueue(slug, this.#redis)
    queue.on('error', (error) => this.#log.debug({ err: error, slug }, 'queue error'))
    this.#queues.set(slug, queue)
    return queue
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()))
  }
}

function openQueue(slug: string, redis: RedisConnection): Queue {
  return new Queue(slug, {
    connection: redis,
    prefix: upstreamKeys.queuePrefix(slug),
    // Fails when Redis is away instead of waiting for it: the caller is told 503.
    skipWaitingForReady: true,
    streams: { events: { maxLen: 100 } },
    defaultJobOptions: {
      // Attempts are the worker's business, under the call's deadline.
      attempts: 1,
      removeOnComplete: true,
      removeOnFail: { count: 100, age: 3_600 },
    },
  })
}

/**
 * Puts a call in its upstream's queue. Its id makes a second add of the same call harmless. Who has the lower priority
 * goes first; every job has one, for jobs without would go before all others.
 */
export async function enqueueCall(queues: CallQueues, call: CallJob, priority: number): Promise<void> {
  await queues.of(call.slug).add(CALL_JOB, parseCallJob(call), { jobId: call.id, priority })
}

/** Takes a call out of its queue while it still waits; true when it was there. */
export async function removeCall(queues: CallQueues, slug: string, callId: string): Promise<boolean> {
  return (await queues.of(slug).remove(callId)) === 1
}

/** BullMQ's lowest priority. */
const PRIORITY_MAX = 2_097_151

/** A fair tag as a job priority, counted from a base; who has the lower one goes first. */
export function priorityOf(tag: number, base: number): number {
  return Math.min(Math.max(1, Math.floor(tag - base) + 1), PRIORITY_MAX)
}

/** Gives the waiting calls of a queue priorities counted from a new base. */
export async function rebasePriorities(queues: CallQueues, slug: string, base: number): Promise<void> {
  for (const job of await queues.of(slug).getPrioritized()) {
    // A probe has no place in line: it goes last, always.
    if (job.name !== CALL_JOB) continue
    const { place } = parseCallJob(job.data)
    // One that ended meanwhile needs none.
    await job.changePriority({ priority: priorityOf(place?.tag ?? base, base) }).catch(() => undefined)
  }
}

/** Tells the workers that nobody waits for a call any more. */
export async function announceCancel(redis: RedisConnection, slug: string, callId: string): Promise<void> {
  await redis.publish(channels.cancel, `${slug} ${callId}`)
}
