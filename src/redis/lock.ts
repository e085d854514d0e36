import type { RedisConnection } from './connection.ts'
import { loadScript } from './script.ts'

const extend = loadScript(new URL('./lua/extend-lock.lua', import.meta.url))

/**
 * Extends a lock by `lifeMs` if one of `tokens` still holds it; it keeps the first token. A lock is
 * a key set with NX and PX whose value is the token of its holder (Redis documentation,
 * "Distributed locks", with a single instance).
 *
 * @throws what Redis throws
 */
export async function extendLock(
  redis: RedisConnection,
  lock: string,
  { tokens, lifeMs }: { tokens: string[]; lifeMs: number },
): Promise<void> {
  await extend.run(redis, [lock], [lifeMs, ...tokens])
}

/**
 * Releases a lock if one of `tokens` still holds it, and deletes keys of its slot.
 *
 * @throws what Redis throws
 */
export async function releaseLock(
  redis: RedisConnection,
  [lock, ...deleted]: [lock: string, ...deleted: string[]],
  tokens: string[],
): Promise<void> {
  await extend.run(redis, [lock, ...deleted], [0, ...tokens])
}
