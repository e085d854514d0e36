import type { RedisConnection } from './connection.ts'

/** How long a reading of Redis' memory is used, milliseconds. */
const FRESH_MS = 1_000

/** Above this share of its memory, Redis stores only what calls need. */
const SHARE_MAX = 0.75

/**
 * Tells whether a Redis has room for data that calls can do without: stored answers and results.
 * The rest of its memory is reserved for calls, so that accounts with many results cannot take it
 * away. On a Redis Cluster, one node is measured and stands for all nodes.
 */
export class MemoryHeadroom {
  readonly #redis: RedisConnection
  #look: { at: number; isShort: Promise<boolean> } | undefined

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  /** Whether memory is short. Fails open, because Redis itself refuses what does not fit. */
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
