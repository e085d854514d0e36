import { Batcher } from '../../src/async/batcher.ts'
import type { HealthCache } from '../../src/health/health-cache.ts'
import { recordSuccesses } from '../../src/health/record.ts'
import type { Log } from '../../src/log.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import type { Metrics } from '../../src/telemetry/metrics.ts'

/**
 * How long the successes of an upstream are gathered before they are counted, milliseconds; a
 * failure is counted at once. A row of failures opens a breaker only if no success was counted for
 * twice as long (`QUIET_MS_TO_OPEN`).
 */
const GATHER_MS = 500

interface SuccessBatcherDeps {
  redis: RedisConnection
  health: HealthCache
  metrics: Pick<Metrics, 'attempts' | 'beforeRead'>
  log: Log
}

/** Counts the calls whose attempts were answered well, for the health and in the metrics. */
export class SuccessBatcher {
  readonly #redis: RedisConnection
  readonly #health: HealthCache
  readonly #metrics: Pick<Metrics, 'attempts'>
  readonly #log: Log
  readonly #latencies = new Batcher<number>(this.#count.bind(this), { gatherMs: GATHER_MS })

  constructor({ redis, health, metrics, log }: SuccessBatcherDeps) {
    this.#redis = redis
    this.#health = health
    this.#metrics = metrics
    this.#log = log
    metrics.beforeRead(() => void this.#latencies.drain())
  }

  add(slug: string, latencyMs: number): void {
    void this.#latencies.add(slug, latencyMs)
  }

  /** Sends what is pending, before a failure is counted. */
  flush(slug: string): void {
    this.#latencies.flush(slug)
  }

  async #count(latenciesMs: number[], slug: string): Promise<undefined[]> {
    this.#metrics.attempts.inc({ slug, result: 'ok', source: 'call' }, latenciesMs.length)
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
