import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { releaseLimits } from './account-limits.ts'
import { monthOf } from './month.ts'
import { recordUsage } from './usage-ledger.ts'

const REPEAT = { ...RESTART_RETRY, mayRepeat: () => true }

type LimitedCall = Pick<CallJob, 'id' | 'accountId' | 'keyId' | 'mode' | 'slug' | 'enqueuedAt'>

/** Counts a call's usage and releases its limits. @returns whether no other process released them @throws RedisError */
export async function completeCall(redis: RedisConnection, call: LimitedCall, status: number): Promise<boolean> {
  // Counted first, under the call's id: a lost reply to the release would not say that this process has to count it.
  await retryUntil(() => recordUsage(redis, [{ call, status }], call.id), REPEAT)
  const ended = { month: monthOf(call.enqueuedAt).name, ended: [{ callId: call.id, status, keyId: call.keyId }] }
  return (await releaseLimits(redis, call, ended)) === 1
}
