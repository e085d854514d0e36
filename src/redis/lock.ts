import type { RedisConnection } from './connection.ts'
import { loadScript } from './script.ts'

const extend = loadScript(new URL('./lua/extend-lock.lua', import.meta.url))

/**
 * Gives a lock, a key set with NX and PX whose value is its holder's token, another `lifeMs`, if
 * one of `tokens` still holds it. The lock keeps the first token. The pattern comes from Redis'
 * page on distributed locks, on one instance.
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
 * Ends a lock, if one of `tokens` still holds it, and deletes keys of its slot.
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
