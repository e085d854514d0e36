import { setTimeout as delay } from 'node:timers/promises'
import type { HealthCache } from '../health/health-watch.ts'
import { completeCall } from '../limits/complete-call.ts'
import { isInFlight } from '../limits/end-calls.ts'
import type { Log } from '../log.ts'
import type { AsyncCall } from '../queue/async-call.ts'
import { sendReply } from '../queue/reply.ts'
import type { ReplyHead } from '../queue/reply-head.ts'
import { readResult, storeResult } from '../queue/results.ts'
import type { CallLogWriter } from '../telemetry/call-log-writer.ts'
import { countCall } from '../telemetry/count-call.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { CALLER_LEFT_STATUS, usageStatusOfCancelled } from './call-status.ts'
import { type Withdrawal, type WithdrawDeps, withdrawCall } from './withdraw-call.ts'

export interface CancelDeps extends WithdrawDeps {
  telemetry: Telemetry
  callLog: Pick<CallLogWriter, 'write'>
  health: Pick<HealthCache, 'now'>
  log: Log
}

const NO_BODY = Buffer.alloc(0)

/** How long to wait for the worker that has a cancelled call, milliseconds: a worker that is alive takes a few. */
const RELEASE_MS_MAX = 1_000
const RELEASE_CHECK_MS = 20

/**
 * Cancels an asynchronous call. The first stored result decides who wins, this one or the worker's. A call that no worker
 * had begun with is completed here and costs nothing; otherwise its worker knows whether a request was sent, and
 * completes it, unless it was lost.
 * @returns false when the call had ended before
 * @throws GatewayError DEPENDENCY_UNAVAILABLE or OVERLOADED: nothing was decided
 */
export async function cancelCall(deps: CancelDeps, call: AsyncCall): Promise<boolean> {
  const { redis, log } = deps
  const head: ReplyHead = {
    id: call.id,
    code: 'CALL_CANCELLED',
    times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
  }
  const reply = { head, body: NO_BODY }
  const storing = await storeResult(redis, call, reply)
  if (storing.kind !== 'kept') {
    const earlier = await readResult(redis, call)
    return earlier?.head.code === 'CALL_CANCELLED'
  }
  // The call is cancelled now, whatever fails: a worker that still has it reads the stored result.
  const withdrawing = withdrawCall(deps, { ...call, waitEntry: call.waiting, jobId: call.id })
  const steps = await Promise.allSettled([
    withdrawing,
    storing.isStarted ? endStarted(deps, call, withdrawing) : complete(deps, call, { wasSent: false }),
    sendReply(redis, call, reply),
  ])
  for (const step of steps) {
    if (step.status === 'rejected')
      log.warn({ err: step.reason, callId: call.id }, 'failed to clean up after a cancelled call')
  }
  return true
}

async function endStarted(deps: CancelDeps, call: AsyncCall, withdrawing: Promise<Withdrawal>): Promise<void> {
  if ((await withdrawing) === 'removed-started') await complete(deps, call, { wasSent: true })
  else await awaitRelease(deps, call)
}

/** The caller's next call must not find the cancelled one in flight. */
async function awaitRelease({ redis }: CancelDeps, call: AsyncCall): Promise<void> {
  const end = performance.now() + RELEASE_MS_MAX
  while (performance.now() < end && (await isInFlight(redis, call))) await delay(RELEASE_CHECK_MS)
}

async function complete(
  { redis, telemetry, callLog, health, log }: CancelDeps,
  call: AsyncCall,
  { wasSent }: { wasSent: boolean },
): Promise<void> {
  if (!(await completeCall(redis, call, usageStatusOfCancelled(wasSent)))) return
  const { id: callId, accountId, keyId, slug, endpoint, mode, origin } = call
  const end = { status: CALLER_LEFT_STATUS, code: 'CALL_CANCELLED' } as const
  countCall(telemetry, { slug, mode, ...end, accountId })
  const totalMs = Math.max(0, health.now() - call.limitsAcquiredAt)
  callLog.write({ id: callId, origin, accountId, keyId, mode, slug, endpoint, ...end, totalMs })
  log.info({ callId, account: accountId, slug }, 'asynchronous call cancelled')
}
