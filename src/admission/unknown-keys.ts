import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { GatewayError } from '../errors.ts'
import { clientOf } from '../limits/throttle.ts'
import { TokenBuckets } from '../limits/token-buckets.ts'

/** How long it is remembered that nobody has a key, milliseconds. */
const REMEMBERED_MS = 60_000
const REMEMBERED_MAX = 10_000

/** How late a client over its bound is refused, milliseconds. */
const REFUSAL_MS = 250

/**
 * Keeps callers with made-up keys from Postgres: anybody can compute a right checksum. Only look-ups of keys that this
 * process does not know pass here, so an account that is calling never notices.
 */
export class UnknownKeys {
  readonly #refused = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: REMEMBERED_MS })
  readonly #lookUps: TokenBuckets

  /** `perMinute` bounds the look-ups that find nothing, for each client address; 0 is no bound. */
  constructor(perMinute: number) {
    this.#lookUps = new TokenBuckets({ perSecond: perMinute / 60, burst: perMinute })
  }

  /**
   * Looks a key up for a client address. `cacheKey` names the key without being it; `find` resolves to undefined when
   * nobody has the key.
   *
   * @throws GatewayError INVALID_API_KEY, or RATE_LIMIT_EXCEEDED for a client that sent too many unknown keys
   */
  async lookUp<T>(cacheKey: string, address: string, find: () => Promise<T | undefined>): Promise<T> {
    if (this.#refused.has(cacheKey)) throw new GatewayError('INVALID_API_KEY')
    const client = clientOf(address)
    // Taken before the look-up, so that look-ups made at once are counted too.
    const retryAfterMs = this.#lookUps.take(client)
    if (retryAfterMs > 0) {
      // A connection has few requests under way: late refusals bound how many of them this process has to answer.
      await delay(REFUSAL_MS)
      throw new GatewayError('RATE_LIMIT_EXCEEDED', {
        message: 'Too many unknown API keys came from this address.',
        hint: 'Wait, and check the key',
        retryAfterMs,
      })
    }
    let isUnknown = false
    try {
      const found = await find()
      if (found !== undefined) return found
      isUnknown = true
    } finally {
      if (!isUnknown) this.#lookUps.refund(client)
    }
    this.#refused.set(cacheKey, true)
    throw new GatewayError('INVALID_API_KEY')
  }
}
