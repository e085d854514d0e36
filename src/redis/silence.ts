import type { Redis } from 'ioredis'

/** How often to check for data from Redis, milliseconds. */
const LOOK_EVERY_MS = 100

/** Redis is connected but does not answer. */
class SilentRedisError extends Error {
  constructor(silentMs: number) {
    super(`Redis has not answered for ${silentMs} ms`)
    this.name = 'SilentRedisError'
  }
}

/**
 * If Redis is silent for so long while commands wait, all waiting commands fail and the connection
 * is opened again. A timer for each command would cost more.
 */
export function failOnStall(redis: Redis, silentMsMax: number): void {
  whenSilent(redis, silentMsMax, () => {
    const error = new SilentRedisError(silentMsMax)
    redis.recoverFromFatalError(error, error, { offlineQueue: false })
  })
}

/**
 * If Redis is silent for so long while commands wait, the connection is opened again and the
 * commands are sent again. Without this, a host that died silently would block a process until the
 * kernel gives up after a quarter of an hour.
 */
export function reconnectWhenSilent(redis: Redis, silentMsMax: number): void {
  whenSilent(redis, silentMsMax, () => redis.stream.destroy())
}

/**
 * Calls `act` after a silence. Time in which this process was too busy to read does not count as
 * silence, because an answer may have arrived unread.
 */
function whenSilent(redis: Redis, silentMsMax: number, act: () => void): void {
  let heardAt = performance.now()
  let lookedAt = heardAt
  let bytesHeard = 0
  const look = (): void => {
    const now = performance.now()
    const isBusy = now - lookedAt > 2 * LOOK_EVERY_MS
    lookedAt = now
    const { bytesRead } = redis.stream ?? { bytesRead: 0 }
    if (isBusy || redis.commandQueue.length === 0 || bytesRead !== bytesHeard) heardAt = now
    bytesHeard = bytesRead
    if (now - heardAt < silentMsMax) return
    heardAt = now
    act()
  }
  const timer = setInterval(look, LOOK_EVERY_MS).unref()
  redis.once('end', () => clearInterval(timer))
}
