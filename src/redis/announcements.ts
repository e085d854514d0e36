import type { Log } from '../log.ts'
import { openRedis, type RedisConnection } from './connection.ts'

/**
 * The published messages that this process receives, over one connection. Redis does not store
 * messages, so messages that are published while there is no connection are lost.
 */
export class Announcements {
  readonly #redis: RedisConnection
  readonly #log: Log

  constructor(redisUrls: string[], log: Log) {
    this.#redis = openRedis(redisUrls, 'blocking', log)
    this.#log = log
  }

  /** @param onConnect called whenever messages may have been lost, and at first */
  on(channel: string, onMessage: (message: string) => void, onConnect?: () => void): void {
    this.#redis.on('message', (from, message) => {
      if (from === channel) onMessage(message)
    })
    if (onConnect) this.#redis.on('ready', onConnect)
    this.#redis
      .subscribe(channel)
      .catch((error) => this.#log.debug({ err: error, channel }, 'failed to subscribe to a channel'))
  }

  close(): void {
    this.#redis.disconnect()
  }
}
