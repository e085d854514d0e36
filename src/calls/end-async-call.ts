import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { HealthCache } from '../health/health-watch.ts'
import { endCalls } from '../limits/end-calls.ts'
import { recordUsage } from '../limits/usage-ledger.ts'
import type { Log } from '../log.ts'
import type { CallJob } from '../queue/call-job.ts'
import { type CallTimes, NO_BODY, type Reply, type ReplyHead } from '../queue/reply-head.ts'
import { type Reach, refundOf, shownStatusOf, type Verdict } from '../queue/verdict.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { CallLogWriter } from '../telemetry/call-log-writer.ts'
import { countCall, type EndedCall, lineOf } from '../telemetry/ended-call.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

export interface EndDeps {
  redis: RedisConnection
  telemetry: Pick<Telemetry, 'metrics' | 'minutes'>
  callLog: Pick<CallLogWriter, 'write'>
  /** Redis' clock. */
  health: Pick<HealthCache, 'now'>
  log: Log
}

type AccountCall = Pick<CallJob, 'id' | 'accountId' | 'keyId' | 'credentialId' | 'mode' | 'slug' | 'limitsAcquiredAt'>

export interface AsyncCallEnd {
  /** Of the outcome that is kept, which the caller can fetch by now. */
  head: ReplyHead
  /** How far the call's requests got, as the process knows that ends the call. */
  reach: Reach
  /** The parts of the call's time; absent if no worker ran it. */
  times?: CallTimes
  bytes?: number
  /** Sends the node whose caller may still wait that the outcome is kept. */
  reply?: (announcement: Reply) => Promise<void>
}

const REPEAT = { ...RESTART_RETRY, mayRepeat: () => true }

/**
 * Ends an asynchronous call whose outcome is kept: completes it for its account, counts it, writes
 * its row and its line of the log, and tells the node whose caller may wait, in this order. Several
 * processes may end a call, and a single process counts it.
 *
 * @throws RedisError: it can be repeated
 */
export async function endAsyncCall(
  { redis, telemetry, callLog, health, log }: EndDeps,
  call: AccountCall & Pick<CallJob, 'endpoint' | 'origin' | 'traceparent'>,
  { head, reach, times, bytes, reply }: AsyncCallEnd,
): Promise<void> {
  const { id, accountId, keyId, slug, endpoint, mode, origin, traceparent } = call
  const { code, cacheStatus, cause } = head
  if (await completeCall(redis, call, { code, reach })) {
    const totalMs = Math.max(0, health.now() - call.limitsAcquiredAt)
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
 * @returns whether no process did before
 * @throws RedisError
 */
export async function completeCall(redis: RedisConnection, call: AccountCall, verdict: Verdict): Promise<boolean> {
  // Counted first, under the call's id: if the release's reply is lost, nobody would know that the
  // call is still to be counted.
  await retryUntil(() => recordUsage(redis, [{ call, verdict }], call.id), REPEAT)
  const ending = { ...call, isAsync: true, refund: refundOf(verdict) }
  return (await endCalls(redis, call, { calls: [ending] })).ended === 1
}
