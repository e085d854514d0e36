import type { Log } from '../log.ts'
import type { RedisConnection } from './connection.ts'

const SYNC_EVERY_MS = 15_000

/** A slower answer says little about when it was written, milliseconds. */
const SYNC_TRIP_MS_MAX = 250

/**
 * Redis' clock as this process sees it. Deadlines are written and read in Redis time, so that machines whose own
 * clocks differ agree on them. It is counted from the process's monotonic clock: a step of the machine's clock, as
 * after a resume or by NTP, moves no deadline.
 */
export class RedisClock {
  readonly #redis: RedisConnection
  readonly #log: Log
  /** Redis' time minus the monotonic clock's; the machine's own time until Redis has answered. */
  #offsetMs = Date.now() - performance.now()
  #timer: NodeJS.Timeout | undefined

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
  }

  /** Milliseconds since the epoch, whole ones: times go into jobs, which hold no fractions. */
  now(): number {
    return Math.floor(performance.now() + this.#offsetMs)
  }

  #sync(): void {
    if (this.#redis.status !== 'ready') return
    const sentAt = performance.now()
    this.#redis.time().then(
      ([seconds, microseconds]) => {
        const roundTripMs = performance.now() - sentAt
        if (roundTripMs > SYNC_TRIP_MS_MAX) return
        this.#offsetMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - (sentAt + roundTripMs / 2)
      },
      (error) => this.#log.debug({ err: error }, 'failed to read the clock of Redis'),
    )
  }
}
