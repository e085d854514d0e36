import { LRUCache } from 'lru-cache'

interface TokenBucketOptions {
  /** Rate at which a bucket fills, tokens per second; 0: no bound. */
  perSecond: number
  burst: number
  /** The clock, milliseconds. Default: `turnNow`. */
  now?: () => number
}

/**
 * Most buckets. Beyond this number the least recently used bucket is forgotten, which makes it full
 * again.
 */
const BUCKETS_MAX = 50_000

let turnAt: number | undefined

/**
 * When this turn of the event loop first read this clock, milliseconds. Requests that one turn
 * handles have arrived by then. If time went on meanwhile, the work for the first of many expensive
 * requests would fill the bucket for the next, and the turn would end after all of them.
 */
function turnNow(): number {
  if (turnAt === undefined) {
    turnAt = performance.now()
    setImmediate(() => {
      turnAt = undefined
    })
  }
  return turnAt
}

/** Token buckets by subject, in the memory of this process. */
export class TokenBuckets {
  readonly #perSecond: number
  readonly #burst: number
  readonly #now: () => number
  readonly #buckets: LRUCache<string, { tokens: number; at: number }>

  constructor({ perSecond, burst, now = turnNow }: TokenBucketOptions) {
    this.#perSecond = perSecond
    this.#burst = Math.max(burst, 1)
    this.#now = now
    // The cache allocates all its entries at once. Without a bound, buckets are never used.
    this.#buckets = new LRUCache({ max: perSecond === 0 ? 1 : BUCKETS_MAX })
  }

  /**
   * Takes tokens, at most a full bucket.
   *
   * @returns 0 if it took the tokens; otherwise it takes none and returns the milliseconds until
   *   there are so many
   */
  take(subject: string, wanted = 1): number {
    if (this.#perSecond === 0) return 0
    const count = Math.min(wanted, this.#burst)
    const bucket = this.#filled(subject)
    if (bucket.tokens < count) return Math.ceil(((count - bucket.tokens) / this.#perSecond) * 1_000)
    bucket.tokens -= count
    return 0
  }

  /** Milliseconds until there is a token; none is taken. */
  waitMs(subject: string): number {
    if (this.#perSecond === 0 || !this.#buckets.has(subject)) return 0
    return Math.max(0, Math.ceil(((1 - this.#filled(subject).tokens) / this.#perSecond) * 1_000))
  }

  /**
   * Takes tokens for work that is done already. If the bucket has too few, it owes the rest, up to
   * `owedMax`.
   */
  charge(subject: string, count: number, owedMax = 0): void {
    if (this.#perSecond === 0) return
    const bucket = this.#filled(subject)
    bucket.tokens = Math.max(-owedMax, bucket.tokens - count)
  }

  refund(subject: string, count = 1): void {
    if (this.#perSecond === 0) return
    const bucket = this.#filled(subject)
    bucket.tokens = Math.min(this.#burst, bucket.tokens + count)
  }

  #filled(subject: string): { tokens: number; at: number } {
    const now = this.#now()
    const bucket = this.#buckets.get(subject) ?? { tokens: this.#burst, at: now }
    bucket.tokens = Math.min(this.#burst, bucket.tokens + ((now - bucket.at) / 1_000) * this.#perSecond)
    bucket.at = now
    this.#buckets.set(subject, bucket)
    return bucket
  }
}
