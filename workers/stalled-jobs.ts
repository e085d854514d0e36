import { setTimeout as delay } from 'node:timers/promises'
import type { Worker } from 'bullmq'
import { Cluster } from 'ioredis'
import type { Log } from '../src/log.ts'
import type { RedisConnection } from '../src/redis/connection.ts'

export interface StalledJobsDeps {
  redis: RedisConnection
  workers: Worker[]
  everyMs: number
  log: Log
}

/**
 * Requeues jobs of dead workers, for all queues of this process: one command finds the queues with jobs under way,
 * where BullMQ's own timers run a script for every queue. BullMQ's marker keeps processes from checking a queue at
 * once.
 */
export class StalledJobs {
  readonly #deps: StalledJobsDeps
  readonly #closing = new AbortController()
  #checking: Promise<void> = Promise.resolve()

  constructor(deps: StalledJobsDeps) {
    this.#deps = deps
  }

  open(): void {
    this.#checking = this.#checkUntilClosed()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#checking
  }

  async #checkUntilClosed(): Promise<void> {
    const { redis, everyMs, log } = this.#deps
    const { signal } = this.#closing
    while (!signal.aborted) {
      // Commands of a lost connection are sent again when it is back: none is piled up here.
      if (redis.status === 'ready') {
        await checkStalledJobs(this.#deps).catch((error) =>
          log.debug({ err: error }, 'failed to check for stalled jobs'),
        )
      }
      // From the end of a check: by then BullMQ's marker of it has ended.
      await delay(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }
}

/** @throws what Redis throws */
export async function checkStalledJobs({ redis, workers }: Pick<StalledJobsDeps, 'redis' | 'workers'>): Promise<void> {
  if (!(await haveJobsUnderWay(redis, workers))) return
  await Promise.all(
    workers.map(async (worker) => {
      if (await haveJobsUnderWay(redis, [worker])) await worker.backend.moveStalledJobsToWait()
    }),
  )
}

/** On a Cluster each queue has its own slot: one command cannot ask for all. */
async function haveJobsUnderWay(redis: RedisConnection, workers: Worker[]): Promise<boolean> {
  if (redis instanceof Cluster && workers.length > 1) return true
  return (await redis.exists(...workers.map(({ keys }) => keys.active ?? ''))) > 0
}
