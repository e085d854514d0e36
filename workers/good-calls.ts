import type { HealthWatch } from '../src/health/health-watch.ts'
import { recordGoodCalls } from '../src/health/record.ts'
import type { Log } from '../src/log.ts'
import type { RedisConnection } from '../src/redis/connection.ts'

interface Tally {
  latenciesMs: number[]
  isSending: boolean
}

/**
 * Good attempts of one worker on their way to being counted: while one message to Redis is under way the next ones
 * gather, so that a busy upstream's attempts cost one message for many.
 */
export class GoodCalls {
  readonly #redis: RedisConnection
  readonly #health: HealthWatch
  readonly #log: Log
  readonly #tallies = new Map<string, Tally>()

  constructor(redis: RedisConnection, health: HealthWatch, log: Log) {
    this.#redis = redis
    this.#health = health
    this.#log = log
  }

  add(slug: string, latencyMs: number): void {
    let tally = this.#tallies.get(slug)
    if (!tally) {
      tally = { latenciesMs: [], isSending: false }
      this.#tallies.set(slug, tally)
    }
    tally.latenciesMs.push(latencyMs)
    if (!tally.isSending) void this.#drain(slug, tally)
  }

  /** Sends what has gathered: what is counted next comes after it. */
  send(slug: string): void {
    const tally = this.#tallies.get(slug)
    if (tally && tally.latenciesMs.length > 0) void this.#count(slug, tally.latenciesMs.splice(0))
  }

  async #drain(slug: string, tally: Tally): Promise<void> {
    tally.isSending = true
    while (tally.latenciesMs.length > 0) await this.#count(slug, tally.latenciesMs.splice(0))
    tally.isSending = false
  }

  async #count(slug: string, latenciesMs: number[]): Promise<void> {
    try {
      const { changed } = await recordGoodCalls(this.#redis, slug, latenciesMs)
      if (changed) await this.#health.read(slug)
    } catch (error) {
      // Lost where Redis is away: a score stands missing samples.
      this.#log.warn({ err: error, slug, attempts: latenciesMs.length }, 'attempts not counted')
    }
  }
}
