import type { Redis } from 'ioredis'

/** How often it is looked whether anything came, milliseconds. */
const LOOK_EVERY_MS = 100

/** Redis is connected and says nothing. */
class SilentRedisError extends Error {
  constructor(silentMs: number) {
    super(`Redis has not answered anything for ${silentMs} ms`)
    this.name = 'SilentRedisError'
  }
}

/**
 * Fails all commands that wait when Redis has said nothing for so long, and connects anew. A timer
 * for each command would cost more.
 */
export function failOnStall(redis: Redis, silentMsMax: number): void {
  whenSilent(redis, silentMsMax, () => {
    const error = new SilentRedisError(silentMsMax)
    redis.recoverFromFatalError(error, error, { offlineQueue: false })
  })
}

/**
 * Connects anew when Redis has said nothing for so long although commands wait; they are sent
 * again. Without this a host that died without a word would hold a process until the kernel gives
 * up, a quarter of an hour later.
 */
export function reconnectWhenSilent(redis: Redis, silentMsMax: number): void {
  whenSilent(redis, silentMsMax, () => redis.stream.destroy())
}

/**
 * Time in which this process could not look, because it was busy, is no silence: the answer may be
 * there, not read.
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
