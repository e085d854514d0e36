import { setTimeout as delay } from 'node:timers/promises'
import { Queue, type Worker } from 'bullmq'
import { Cluster } from 'ioredis'
import type { Log } from '../src/log.ts'
import { earlierLaneOf, type Lane } from '../src/queue/lanes.ts'
import type { RedisConnection } from '../src/redis/connection.ts'
import { readProcesses } from '../src/telemetry/heartbeat.ts'

const LOOK_EVERY_MS = 2_000

/**
 * Looks in a row that find an earlier queue empty and no process that fills it, before the queue is
 * deleted.
 */
const EMPTY_LOOKS = 3

export interface EarlierQueuesDeps {
  redis: RedisConnection
  clock: { now: () => number }
  slugs: string[]
  startWorker: (lane: Lane) => Worker
  log: Pick<Log, 'debug' | 'info'>
}

/**
 * Serves the queues that versions before lanes have, one of each API, while a process of such a
 * version lives or a queue still holds calls. An upgrade then loses no call, in whatever order
 * processes are replaced. The empty queues are deleted at the end. @until 0.4.0
 */
export class EarlierQueues {
  readonly #deps: EarlierQueuesDeps
  readonly #closing = new AbortController()
  readonly #workers = new Map<string, Worker>()
  #looking: Promise<void> = Promise.resolve()
  #emptyLooks = 0

  constructor(deps: EarlierQueuesDeps) {
    this.#deps = deps
  }

  open(): void {
    this.#looking = this.#lookUntilClosed()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([this.#looking, ...[...this.#workers.values()].map((worker) => worker.close())])
  }

  async #lookUntilClosed(): Promise<void> {
    const { redis, log } = this.#deps
    const { signal } = this.#closing
    while (!signal.aborted) {
      // Commands of a lost connection are sent again when it is back: none is piled up here.
      if (redis.status === 'ready') {
        await this.#look().catch((error) => log.debug({ err: error }, 'failed to look at earlier queues'))
      }
      await delay(LOOK_EVERY_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  async #look(): Promise<void> {
    const { redis, clock, slugs } = this.#deps
    const beats = await readProcesses(redis, clock.now())
    const isFilled = beats.some(({ hasLanes }) => !hasLanes)
    const left = await this.#withQueue(slugs)
    if (!isFilled && left.length === 0) return await this.#stop()
    for (const slug of isFilled ? slugs : left) await this.#serve(slug)
    const isEmpty = !isFilled && (await Promise.all(left.map((slug) => this.#isEmpty(slug)))).every(Boolean)
    this.#emptyLooks = isEmpty ? this.#emptyLooks + 1 : 0
    if (this.#emptyLooks < EMPTY_LOOKS) return
    await this.#stop()
    for (const slug of left) await this.#onQueue(slug, (queue) => queue.obliterate({ force: true }))
  }

  /** The APIs whose earlier queue is there. On one Redis one command says that there are none. */
  async #withQueue(slugs: string[]): Promise<string[]> {
    const { redis } = this.#deps
    const metas = slugs.map((slug) => keyOf(slug, 'meta'))
    if (metas.length === 0) return []
    if (!(redis instanceof Cluster) && (await redis.exists(metas)) === 0) return []
    const found = await Promise.all(metas.map((meta) => redis.exists(meta)))
    return slugs.filter((_, index) => found[index] === 1)
  }

  /**
   * Whether no call, probe or check of a key is under way. The next scheduled probe does not count.
   */
  async #isEmpty(slug: string): Promise<boolean> {
    const { redis } = this.#deps
    const kinds = ['wait', 'prioritized', 'active', 'paused']
    const found = await Promise.all(kinds.map((kind) => redis.exists(keyOf(slug, kind))))
    return found.every((count) => count === 0)
  }

  async #serve(slug: string): Promise<void> {
    if (this.#workers.has(slug) || this.#closing.signal.aborted) return
    // The queue held the calls of a paused API. Today workers hold them.
    await this.#onQueue(slug, (queue) => queue.resume())
    this.#workers.set(slug, this.#deps.startWorker(earlierLaneOf(slug)))
    if (this.#workers.size === 1) this.#deps.log.info('serving the queues of an earlier version too')
  }

  async #stop(): Promise<void> {
    if (this.#workers.size === 0) return
    const workers = [...this.#workers.values()]
    this.#workers.clear()
    await Promise.all(workers.map((worker) => worker.close()))
    this.#deps.log.info('the queues of an earlier version are empty; the worker has stopped serving them')
  }

  async #onQueue<T>(slug: string, use: (queue: Queue) => Promise<T>): Promise<T> {
    const { name, prefix } = earlierLaneOf(slug)
    const queue = new Queue(name, { connection: this.#deps.redis, prefix, skipVersionCheck: true })
    queue.on('error', (error) => this.#deps.log.debug({ err: error, slug }, 'earlier queue failed'))
    try {
      return await use(queue)
    } finally {
      await queue.close()
    }
  }
}

function keyOf(slug: string, kind: string): string {
  const { name, prefix } = earlierLaneOf(slug)
  return `${prefix}:${name}:${kind}`
}
