import type { Db } from '../db/database.ts'
import { countMonthUsage } from '../db/usage.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { monthOf } from './month.ts'

export interface MonthUsage {
  /** `2026-11`, UTC. */
  month: string
  used: number
  resetsAt: Date
}

/**
 * The count of Redis, by which calls are admitted, or else the count of the ledger. `clock` is the
 * clock of Redis.
 */
export async function readMonthUsage(
  { db, redis, clock }: { db: Db; redis: RedisConnection; clock: { now: () => number } },
  accountId: string,
): Promise<MonthUsage> {
  const { name, endsAt } = monthOf(clock.now())
  // Without Redis the ledger answers. It is at most seconds behind.
  const counted = await redis.get(accountKeys.month(accountId, name)).catch(() => null)
  const used = counted === null ? await countMonthUsage(db, { userId: accountId }, name) : Number(counted)
  return { month: name, used, resetsAt: new Date(endsAt) }
}
