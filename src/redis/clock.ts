import type { Log } from '../log.ts'
import type { RedisConnection } from './connection.ts'

const SYNC_EVERY_MS = 15_000

/**
 * Redis' clock as this process sees it. Deadlines are written and read in Redis time, so that machines whose own
 * clocks differ agree on them.
 */
export class RedisClock {
  readonly #redis: RedisConnection
  readonly #log: Log
  #offsetMs = 0
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

  /** Milliseconds since the epoch. */
  now(): number {
    return Date.now() + this.#offsetMs
  }

  #sync(): void {
    if (this.#redis.status !== 'ready') return
    const sentAt = Date.now()
    this.#redis.time().then(
      ([seconds, microseconds]) => {
        const roundTripMs = Date.now() - sentAt
        // A slow answer says little about when it was written.
        if (roundTripMs < 250)
          this.#offsetMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - (sentAt + roundTripMs / 2)
      },
      (error) => this.#log.debug({ err: error }, 'redis clock not read'),
    )
  }
}
