import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { GatewayError } from '../errors.ts'
import { ClientBuckets } from './client-buckets.ts'

const REMEMBERED_MS = 60_000
const REMEMBERED_MAX = 10_000

const REFUSAL_MS = 250

/**
 * Keeps unknown credentials away from Postgres: made-up keys, whose checksum anybody can compute,
 * and sessions that have ended. Known credentials do not pass through here.
 */
export class UnknownKeys {
  readonly #refused = new LRUCache<string, true>({ max: REMEMBERED_MAX, ttl: REMEMBERED_MS })
  readonly #lookUps: ClientBuckets

  /** @param perMinute most look-ups of one client address that find nobody; 0: no bound */
  constructor(perMinute: number) {
    this.#lookUps = new ClientBuckets({ perSecond: perMinute / 60, burst: perMinute })
  }

  /**
   * Looks up a credential. `cacheKey` identifies the credential without revealing it. If the
   * look-up throws a refusal of the credential, it counts, and the next request looks the
   * credential up again: a session that ended stays refused, but a disabled account may be enabled
   * again.
   *
   * @throws GatewayError INVALID_API_KEY or RATE_LIMIT_EXCEEDED; also what `find` throws
   */
  async lookUp<T>(cacheKey: string, address: string, find: () => Promise<T | undefined>): Promise<T> {
    if (this.#refused.has(cacheKey)) throw new GatewayError('INVALID_API_KEY')
    // The unit is taken before the look-up, so that concurrent look-ups count too.
    const retryAfterMs = this.#lookUps.take(address)
    if (retryAfterMs > 0) {
      // A connection has few requests at once, so a delay before the refusal limits how many
      // refusals this process answers.
      await delay(REFUSAL_MS)
      throw new GatewayError('RATE_LIMIT_EXCEEDED', {
        message: 'Too many unknown credentials came from this address.',
        hint: 'Wait, and check the credential',
        retryAfterMs,
      })
    }
    let isUnknown = false
    try {
      const found = await find()
      if (found !== undefined) return found
      isUnknown = true
    } catch (error) {
      isUnknown = error instanceof GatewayError && error.status === 401
      throw error
    } finally {
      if (!isUnknown) this.#lookUps.refund(address)
    }
    this.#refused.set(cacheKey, true)
    throw new GatewayError('INVALID_API_KEY')
  }
}
