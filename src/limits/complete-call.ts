import { retryUntil } from '../async/retry-until.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { monthOf, releaseLimits } from './account-limits.ts'
import { recordUsage } from './usage-ledger.ts'

const REPEAT = { mayRepeat: () => true, everyMs: 250, forMs: 30_000 }

type LimitedCall = Pick<CallJob, 'id' | 'accountId' | 'keyId' | 'mode' | 'slug' | 'enqueuedAt'>

/** Releases a call's limits and counts its usage. @returns whether no other process did @throws RedisError */
export async function completeCall(redis: RedisConnection, call: LimitedCall, status: number): Promise<boolean> {
  const ended = { month: monthOf(call.enqueuedAt).name, ended: [{ callId: call.id, status }] }
  if ((await releaseLimits(redis, call, ended)) !== 1) return false
  // No other process counts it.
  await retryUntil(() => recordUsage(redis, [{ call, status }], call.id), REPEAT)
  return true
}
