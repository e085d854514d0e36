import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { refundOf } from './charge.ts'
import { endCalls } from './end-calls.ts'
import { recordUsage } from './usage-ledger.ts'

const REPEAT = { ...RESTART_RETRY, mayRepeat: () => true }

type LimitedCall = Pick<CallJob, 'id' | 'accountId' | 'keyId' | 'mode' | 'slug' | 'limitsAcquiredAt'>

/** Counts an asynchronous call's usage and releases its limits. @returns whether no process did before @throws RedisError */
export async function completeCall(redis: RedisConnection, call: LimitedCall, usageStatus: number): Promise<boolean> {
  // Counted first, under the call's id: if the release's reply is lost, nobody would know that the call is still to be counted.
  await retryUntil(() => recordUsage(redis, [{ call, usageStatus }], call.id), REPEAT)
  const { id: callId, limitsAcquiredAt: at, keyId } = call
  const calls = [{ callId, at, keyId, isAsync: true, refund: refundOf(usageStatus) }]
  return (await endCalls(redis, call, { calls })).ended === 1
}
