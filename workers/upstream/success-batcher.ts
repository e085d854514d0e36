import { Batcher } from '../../src/async/batcher.ts'
import type { HealthCache } from '../../src/health/health-watch.ts'
import { recordSuccesses } from '../../src/health/record.ts'
import type { Log } from '../../src/log.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'

/**
 * How long the successes of an upstream are gathered before they are counted, milliseconds; a
 * failure is counted at once.
 */
const GATHER_MS = 150

/**
 * The same of a healthy upstream. A row of failures opens its breaker only if no success was
 * counted for twice as long (`QUIET_MS_TO_OPEN`). Milliseconds.
 */
const GATHER_HEALTHY_MS = 500

export class SuccessBatcher {
  readonly #redis: RedisConnection
  readonly #health: HealthCache
  readonly #log: Log
  readonly #soon = this.#gatherFor(GATHER_MS)
  readonly #later = this.#gatherFor(GATHER_HEALTHY_MS)

  constructor(redis: RedisConnection, health: HealthCache, log: Log) {
    this.#redis = redis
    this.#health = health
    this.#log = log
  }

  add(slug: string, latencyMs: number): void {
    void (this.#health.isHealthy(slug) ? this.#later : this.#soon).add(slug, latencyMs)
  }

  /** Sends what is pending, before a failure is counted. */
  flush(slug: string): void {
    this.#soon.flush(slug)
    this.#later.flush(slug)
  }

  #gatherFor(gatherMs: number): Batcher<number> {
    return new Batcher<number>((slug, latenciesMs) => this.#count(slug, latenciesMs), { gatherMs })
  }

  async #count(slug: string, latenciesMs: number[]): Promise<undefined[]> {
    try {
      const { changed } = await recordSuccesses(this.#redis, slug, { latenciesMs })
      if (changed) await this.#health.read(slug)
    } catch (error) {
      // Lost if Redis is away: a score can miss samples.
      this.#log.warn({ err: error, slug, attempts: latenciesMs.length }, 'failed to count attempts')
    }
    return []
  }
}
