import { setTimeout as delay } from 'node:timers/promises'
import type { Worker } from 'bullmq'
import { Cluster } from 'ioredis'
import type { Log } from '../src/log.ts'
import type { RedisConnection } from '../src/redis/connection.ts'

export interface StalledJobsDeps {
  redis: RedisConnection
  workers: Worker[]
  everyMs: number
  /** At most one warning a queue in so long: a job that ends its workers runs again every few seconds. Milliseconds. */
  warnEveryMs: number
  log: Pick<Log, 'debug' | 'warn'>
}

/**
 * Requeues jobs of dead workers, for all queues of this process, and warns of them: one command finds the queues with jobs under way,
 * where BullMQ's own timers run a script for every queue. BullMQ's marker keeps processes from checking a queue at once.
 */
export class StalledJobs {
  readonly #deps: StalledJobsDeps
  readonly #closing = new AbortController()
  #checking: Promise<void> = Promise.resolve()
  /** By queue, until they are warned of. */
  readonly #requeued = new Map<string, number>()
  readonly #warnedAt = new Map<string, number>()

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
        await checkStalledJobs(this.#deps, (slug, jobs) => {
          this.#requeued.set(slug, (this.#requeued.get(slug) ?? 0) + jobs)
        }).catch((error) => log.debug({ err: error }, 'failed to check for stalled jobs'))
      }
      this.#warn()
      // From the end of a check: by then BullMQ's marker of it has ended.
      await delay(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }

  #warn(): void {
    const now = performance.now()
    for (const [slug, jobs] of this.#requeued) {
      if (now - (this.#warnedAt.get(slug) ?? Number.NEGATIVE_INFINITY) < this.#deps.warnEveryMs) continue
      this.#requeued.delete(slug)
      this.#warnedAt.set(slug, now)
      this.#deps.log.warn({ slug, jobs }, 'jobs of a worker that died or stood still run again')
    }
  }
}

/** @throws what Redis throws */
export async function checkStalledJobs(
  { redis, workers }: Pick<StalledJobsDeps, 'redis' | 'workers'>,
  onRequeued: (slug: string, jobs: number) => void = () => undefined,
): Promise<void> {
  if (!(await haveJobsUnderWay(redis, workers))) return
  await Promise.all(
    workers.map(async (worker) => {
      if (!(await haveJobsUnderWay(redis, [worker]))) return
      const ids = await worker.backend.moveStalledJobsToWait()
      if (ids.length > 0) onRequeued(worker.name, ids.length)
    }),
  )
}

/** On a Cluster each queue has its own slot: one command cannot ask for all. */
async function haveJobsUnderWay(redis: RedisConnection, workers: Worker[]): Promise<boolean> {
  if (redis instanceof Cluster && workers.length > 1) return true
  return (await redis.exists(...workers.map(({ keys }) => keys.active ?? ''))) > 0
}
