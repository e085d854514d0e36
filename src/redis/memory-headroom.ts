import type { RedisConnection } from './connection.ts'

/** How long what Redis said of its memory is believed, milliseconds. */
const FRESH_MS = 1_000

/**
 * Past this share of its memory Redis keeps what calls need, and nothing that can be done without.
 */
const SHARE_MAX = 0.75

/**
 * Whether a Redis has room for what a call can do without: stored answers and kept results. The
 * rest of its memory is for calls: many accounts that fill it with results take it from nobody. On
 * a Redis Cluster one node speaks for all.
 */
export class MemoryHeadroom {
  readonly #redis: RedisConnection
  #look: { at: number; isShort: Promise<boolean> } | undefined

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  /** Whether memory is short. Fails open: Redis itself refuses what does not fit. */
  isShort(): Promise<boolean> {
    const now = performance.now()
    if (!this.#look || now - this.#look.at > FRESH_MS) {
      const isShort = this.#redis.info('memory').then(isShortIn, () => false)
      this.#look = { at: now, isShort }
    }
    return this.#look.isShort
  }
}

function isShortIn(info: string): boolean {
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
  const max = field('maxmemory')
  return max > 0 && field('used_memory') > SHARE_MAX * max
}
