import type { Log } from '../log.ts'
import type { RedisConnection } from './connection.ts'

const SYNC_EVERY_MS = 15_000

/**
 * A slower answer says little about when it was written: only between which times. Milliseconds.
 */
const SYNC_TRIP_MS_MAX = 250

/** Pause before the next try while no answer has come so fast, milliseconds. */
const SYNC_AGAIN_MS = 1_000

/**
 * Redis' clock as this process sees it. Deadlines are written and read in Redis time, so that
 * machines whose own clocks differ agree on them. It is counted from the process's monotonic clock:
 * a step of the machine's clock, as after a resume or by NTP, moves no deadline.
 */
export class RedisClock {
  readonly #redis: RedisConnection
  readonly #log: Log
  /** Redis' time minus the monotonic clock's; the machine's own time until Redis has answered. */
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

  /** Whole milliseconds since the epoch: times go into jobs, which hold no fractions. */
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
        // It was written between both times: no other offset is possible.
        this.#offsetMs = Math.min(Math.max(this.#offsetMs, redisNow - receivedAt), redisNow - sentAt)
        clearTimeout(this.#againTimer)
        if (!this.#isExact) this.#againTimer = setTimeout(() => this.#sync(), SYNC_AGAIN_MS).unref()
      },
      (error) => this.#log.debug({ err: error }, 'failed to read the clock of Redis'),
    )
  }
}

/** Redis' clock, milliseconds, rounded up: nothing was sent later. */
export async function redisNow(redis: RedisConnection): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000 + Math.ceil(Number(micros) / 1_000)
}
