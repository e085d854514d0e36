import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import { endCalls } from '../limits/end-calls.ts'
import { recordUsage } from '../limits/usage-ledger.ts'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import { type CallTimes, NO_BODY, type Reply, type ReplyHead } from '../queue/reply-head.ts'
import { type Reach, refundOf, shownStatusOf, type Verdict } from '../queue/verdict.ts'
import type { RedisClock } from '../redis/clock.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { CallLogWriter } from '../telemetry/call-log-writer.ts'
import { countCall, type EndedCall, lineOf } from '../telemetry/ended-call.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

export interface EndDeps {
  redis: RedisConnection
  telemetry: Pick<Telemetry, 'metrics' | 'minutes'>
  callLog: Pick<CallLogWriter, 'write'>
  clock: Pick<RedisClock, 'now'>
  log: Log
}

type AccountCall = Pick<CallJob, 'id' | 'accountId' | 'keyId' | 'credentialId' | 'mode' | 'slug' | 'limitsAcquiredAt'>

export interface AsyncCallEnd {
  /** The stored outcome, which the caller can fetch already. */
  head: ReplyHead
  /** How far the call's requests got, as far as this process knows. */
  reach: Reach
  /** The parts of the call's time; absent if no worker ran it. */
  times?: CallTimes
  bytes?: number
  /** Tells the node whose caller may still wait that the outcome is stored. */
  reply?: (announcement: Reply) => Promise<void>
}

/**
 * Ends an asynchronous call whose outcome is stored. In this order it ends the call for its
 * account, counts it, writes its row and its log line, and tells the node whose caller may wait.
 * Several processes may end a call, but only one counts it.
 *
 * @throws RedisError; the step can be repeated
 */
export async function endAsyncCall(
  { redis, telemetry, callLog, clock, log }: EndDeps,
  call: AccountCall & Pick<CallJob, 'endpoint' | 'origin' | 'traceparent'>,
  { head, reach, times, bytes, reply }: AsyncCallEnd,
): Promise<void> {
  const { id, accountId, keyId, slug, endpoint, mode, origin, traceparent } = call
  const { code, cacheStatus, cause } = head
  if (await completeCall(redis, call, { code, reach })) {
    const totalMs = Math.max(0, clock.now() - call.limitsAcquiredAt)
    const ended: EndedCall = {
      ...origin,
      ...{ id, accountId, keyId, mode, slug, endpoint, status: shownStatusOf({ code }), code, cause },
      ...{ cacheStatus, times, reach, totalMs, bytes, traceparent },
    }
    countCall(telemetry, ended)
    callLog.write(ended)
    log.info(lineOf(ended), 'asynchronous call ended')
  }
  await reply?.({ head: { id, times: times ?? head.times, storedFor: accountId, isStored: true }, body: NO_BODY })
}

/**
 * Counts an asynchronous call's usage and releases its limits.
 *
 * @returns whether this process was the first
 * @throws RedisError
 */
export async function completeCall(redis: RedisConnection, call: AccountCall, verdict: Verdict): Promise<boolean> {
  // Usage is counted first, under the call's id. Otherwise, if the reply of the release were lost,
  // nobody would know that the call must still be counted.
  await retryUntil(() => recordUsage(redis, [{ call, verdict }], call.id), RESTART_RETRY)
  const ending = { ...call, isAsync: true, refund: refundOf(verdict) }
  return (await endCalls(redis, call, { calls: [ending] })).ended === 1
}
