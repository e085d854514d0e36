import { LRUCache } from 'lru-cache'
import { Concurrency } from '../async/concurrency.ts'
import { SingleFlight } from '../async/single-flight.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { Reply } from './reply-head.ts'
import { type ResultOf, readResult } from './results.ts'

/** How long a result is kept here after it was read from Redis, milliseconds. It never changes. */
const KEPT_MS = 60_000

/** What a result takes besides its body, bytes. */
const HEAD_BYTES = 1_024

/** Results that are read at once: each may be several megabytes, once compressed and once not. */
const READS_MAX = 8

/**
 * Results as this process has read them: all who fetch one share its bytes, and it is unpacked
 * once.
 */
export class KeptResults {
  readonly #redis: RedisConnection
  readonly #kept: LRUCache<string, Reply>
  readonly #reads = new SingleFlight<Reply | undefined>()
  readonly #concurrency = new Concurrency(READS_MAX)

  /**
   * `bytesMax`: of all results that are kept, the least recently used of which is forgotten first.
   */
  constructor(redis: RedisConnection, bytesMax: number) {
    this.#redis = redis
    this.#kept = new LRUCache({
      maxSize: bytesMax,
      ttl: KEPT_MS,
      sizeCalculation: ({ body }) => body.length + HEAD_BYTES,
    })
  }

  /** @returns undefined if there is none, or none yet */
  async read({ id, accountId }: ResultOf): Promise<Reply | undefined> {
    const key = `${accountId} ${id}`
    return this.#kept.get(key) ?? (await this.#reads.run(key, () => this.#read(key, { id, accountId })))
  }

  async #read(key: string, call: ResultOf): Promise<Reply | undefined> {
    const result = await this.#concurrency.run(() => readResult(this.#redis, call))
    if (result) this.#kept.set(key, result)
    return result
  }
}
