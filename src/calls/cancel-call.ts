import { completeCall } from '../limits/complete-call.ts'
import type { Log } from '../log.ts'
import type { AsyncCall } from '../queue/async-call.ts'
import { sendReply } from '../queue/reply.ts'
import type { ReplyHead } from '../queue/reply-head.ts'
import { readResult, storeResult } from '../queue/results.ts'
import { countCall } from '../telemetry/count-call.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { CALLER_LEFT_STATUS } from './caller-left.ts'
import { type WithdrawDeps, withdrawCall } from './withdraw-call.ts'

export interface CancelDeps extends WithdrawDeps {
  telemetry: Telemetry
  log: Log
}

const NO_BODY = Buffer.alloc(0)

/**
 * Cancels an asynchronous call. The first stored result decides who wins, this one or the worker's.
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
  if ((await storeResult(redis, call, reply)).kind !== 'kept') {
    const earlier = await readResult(redis, call)
    return earlier?.head.code === 'CALL_CANCELLED'
  }
  // The call is cancelled now, whatever fails: a worker that still has it reads the stored result.
  const steps = await Promise.allSettled([
    withdrawCall(deps, { ...call, jobId: call.id }),
    complete(deps, call),
    sendReply(redis, call, reply),
  ])
  for (const step of steps) {
    if (step.status === 'rejected')
      log.warn({ err: step.reason, callId: call.id }, 'failed to clean up after a cancelled call')
  }
  return true
}

/** As a call whose caller left: its month's unit stays spent. */
async function complete({ redis, telemetry, log }: CancelDeps, call: AsyncCall): Promise<void> {
  if (!(await completeCall(redis, call, CALLER_LEFT_STATUS))) return
  const { id: callId, accountId, slug, mode } = call
  countCall(telemetry, { slug, mode, status: CALLER_LEFT_STATUS, code: 'CALL_CANCELLED', accountId })
  log.info({ callId, account: accountId, slug }, 'asynchronous call cancelled')
}
