import type { RedisConnection } from '../../src/redis/connection.ts'
import { readAccounts, readSlot, SLOT_MS, sumOfCounts } from '../../src/telemetry/minute-stats.ts'

const MINUTE_MS = 60_000

/** The calls of the whole fleet in the minute that contains a time. */
export async function readMinute(redis: RedisConnection, epochMs: number) {
  const at = Math.floor(epochMs / MINUTE_MS) * MINUTE_MS
  const slots = Array.from({ length: MINUTE_MS / SLOT_MS }, (_, index) => readSlot(redis, at + index * SLOT_MS))
  const [accounts, ...counts] = await Promise.all([readAccounts(redis, at), ...slots])
  return { ...sumOfCounts(at, counts), accounts }
}
