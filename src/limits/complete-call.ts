import { retryUntil } from '../async/retry-until.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { monthOf, releaseLimits } from './account-limits.ts'
import { recordUsage } from './usage-ledger.ts'

/** How often and for how long a write is repeated while Redis is away or takes no writes. */
const REPEAT = { mayRepeat: () => true, everyMs: 250, forMs: 30_000 }

type LimitedCall = Pick<CallJob, 'id' | 'accountId' | 'keyId' | 'mode' | 'slug' | 'enqueuedAt'>

/**
 * Completes a call that ended with this status: releases its limits and counts it as usage. Done by whichever process
 * comes first; a second time does nothing. API nodes complete their calls in batches: `CallCompletionBatcher`.
 *
 * @returns whether this process came first
 * @throws RedisError when the limits could not be released; their lease ends by itself
 */
export async function completeCall(redis: RedisConnection, call: LimitedCall, status: number): Promise<boolean> {
  const ended = { month: monthOf(call.enqueuedAt).name, ended: [{ callId: call.id, status }] }
  if ((await releaseLimits(redis, call, ended)) !== 1) return false
  // Nobody else counts it from here on.
  await retryUntil(() => recordUsage(redis, [{ call, status }], call.id), REPEAT)
  return true
}
