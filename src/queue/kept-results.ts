import { LRUCache } from 'lru-cache'
import { Concurrency } from '../async/concurrency.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { Reply } from './reply-head.ts'
import { type ResultOf, readResult } from './results.ts'

/**
 * How long a result is cached here after it was read from Redis, milliseconds. A result never
 * changes.
 */
const KEPT_MS = 60_000

/** Memory of a result besides its body, bytes. */
const HEAD_BYTES = 1_024

/**
 * Most results that are read at once. Each may have several megabytes, compressed and uncompressed.
 */
const READS_MAX = 8

/** There is no result, or no result yet. The cache keeps no look-up that ends so. */
const NO_RESULT = new Error('no result')

/**
 * Caches results that this process has read. All who fetch a result share its bytes, and it is
 * decompressed once.
 */
export class KeptResults {
  readonly #kept: LRUCache<string, Reply, ResultOf>

  /**
   * @param bytesMax most bytes of all cached results; beyond it the least recently used is
   *   forgotten
   */
  constructor(redis: RedisConnection, bytesMax: number) {
    const concurrency = new Concurrency(READS_MAX)
    this.#kept = new LRUCache({
      maxSize: bytesMax,
      ttl: KEPT_MS,
      sizeCalculation: ({ body }) => body.length + HEAD_BYTES,
      // If other results evict a read from the cache, its callers still get the result.
      ignoreFetchAbort: true,
      fetchMethod: async (_key, _known, { context: call }) => {
        const result = await concurrency.run(() => readResult(redis, call))
        // If the cache has evicted the look-up, it would reject with an error in place of nothing.
        if (!result) throw NO_RESULT
        return result
      },
    })
  }

  /** @returns undefined if there is no result, or no result yet */
  async read({ id, accountId }: ResultOf): Promise<Reply | undefined> {
    try {
      return await this.#kept.fetch(`${accountId} ${id}`, { context: { id, accountId } })
    } catch (error) {
      if (error === NO_RESULT) return undefined
      throw error
    }
  }
}
