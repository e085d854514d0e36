import type { Db } from '../db/database.ts'
import { countMonthUsage } from '../db/usage.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { accountKeys } from '../redis/keys.ts'
import { monthOf } from './account-limits.ts'

/** What an account has used of its monthly quota, and when the month ends (UTC). */
export interface MonthUsage {
  /** 2026-11. */
  month: string
  used: number
  resetsAt: Date
}

/**
 * This month's count: Redis' own where it has one, which calls are admitted by; else what the ledger holds. `clock` is
 * Redis' clock, by which calls are counted.
 */
export async function readMonthUsage(
  { db, redis, clock }: { db: Db; redis: RedisConnection; clock: { now: () => number } },
  accountId: string,
): Promise<MonthUsage> {
  const { name, endsAt } = monthOf(clock.now())
  // Without Redis the ledger answers, at most the last seconds behind.
  const counted = await redis.get(accountKeys.month(accountId, name)).catch(() => null)
  const used = counted === null ? await countMonthUsage(db, { userId: accountId }, name) : Number(counted)
  return { month: name, used, resetsAt: new Date(endsAt) }
}
