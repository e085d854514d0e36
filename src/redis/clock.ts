import type { Log } from '../log.ts'
import type { RedisConnection } from './connection.ts'

const SYNC_EVERY_MS = 15_000

/**
 * If an answer takes longer, it only says between which times Redis wrote it. Milliseconds.
 */
const SYNC_TRIP_MS_MAX = 250

/** Pause before the next try, until an answer was fast enough, milliseconds. */
const SYNC_AGAIN_MS = 1_000

/**
 * The clock of Redis, as this process knows it. Deadlines are written and read in Redis' time, so
 * that machines with different clocks agree on them. The time is counted with the process's
 * monotonic clock, so that no deadline moves when the machine's clock is changed, for example after
 * a resume or by NTP.
 */
export class RedisClock {
  readonly #redis: RedisConnection
  readonly #log: Log
  /**
   * Redis' time minus the monotonic clock. Until Redis has answered, the machine's own time is
   * used.
   */
  #offsetMs = Date.now() - performance.now()
  #timer: NodeJS.Timeout | undefined
  #againTimer: NodeJS.Timeout | undefined
  #isExact = false

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  open(): void {
    this.#redis.on('ready', () => this.#sync())
    if (this.#redis.status === 'ready') this.#sync()
    this.#timer = setInterval(() => this.#sync(), SYNC_EVERY_MS)
  }

  close(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#againTimer)
  }

  /** Whole milliseconds since the epoch, because jobs hold no fractions. */
  now(): number {
    return Math.floor(performance.now() + this.#offsetMs)
  }

  #sync(): void {
    if (this.#redis.status !== 'ready') return
    const sentAt = performance.now()
    this.#redis.time().then(
      ([seconds, microseconds]) => {
        const receivedAt = performance.now()
        const redisNow = Number(seconds) * 1_000 + Number(microseconds) / 1_000
        if (receivedAt - sentAt <= SYNC_TRIP_MS_MAX) {
          this.#isExact = true
          this.#offsetMs = redisNow - (sentAt + receivedAt) / 2
          return
        }
        // Redis wrote the answer between these two times, so the offset must lie between these
        // bounds.
        this.#offsetMs = Math.min(Math.max(this.#offsetMs, redisNow - receivedAt), redisNow - sentAt)
        clearTimeout(this.#againTimer)
        if (!this.#isExact) this.#againTimer = setTimeout(() => this.#sync(), SYNC_AGAIN_MS).unref()
      },
      (error) => this.#log.debug({ err: error }, 'failed to read the clock of Redis'),
    )
  }
}

/**
 * The time of Redis, milliseconds, rounded up, so that nothing that was sent before seems later.
 */
export async function redisNow(redis: RedisConnection): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000 + Math.ceil(Number(micros) / 1_000)
}
