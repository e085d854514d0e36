import { setTimeout as delay } from 'node:timers/promises'
import { isInFlight } from '../limits/end-calls.ts'
import type { AsyncCall } from '../queue/async-call.ts'
import { sendReply } from '../queue/reply.ts'
import { NO_BODY, NO_TIMES, type ReplyHead } from '../queue/reply-head.ts'
import { readResult, storeResult } from '../queue/results.ts'
import type { Reach } from '../queue/verdict.ts'
import { type EndDeps, endAsyncCall } from './end-async-call.ts'
import { type WithdrawDeps, withdrawCall } from './withdraw-call.ts'

export interface CancelDeps extends WithdrawDeps, EndDeps {}

/**
 * How long to wait for the worker that has a cancelled call, milliseconds. A living worker needs a
 * few.
 */
const RELEASE_MS_MAX = 1_000
const RELEASE_CHECK_MS = 20

/**
 * Cancels an asynchronous call. The first stored result decides whether this process or the worker
 * wins. If no worker has begun with the call, it is ended here and costs nothing. Otherwise the
 * worker knows whether a request was sent, and ends the call, unless the worker is dead.
 * @returns false if the call had ended before
 * @throws GatewayError DEPENDENCY_UNAVAILABLE or OVERLOADED; then nothing was decided
 */
export async function cancelCall(deps: CancelDeps, call: AsyncCall): Promise<boolean> {
  const { redis, log } = deps
  const head: ReplyHead = { id: call.id, code: 'CALL_CANCELLED', times: NO_TIMES }
  const storing = await storeResult(redis, call, { head, body: NO_BODY })
  if (storing.kind !== 'kept') {
    const earlier = await readResult(redis, call)
    return earlier?.head.code === 'CALL_CANCELLED'
  }
  // The call is cancelled from here on, whatever fails below: if a worker still has the call, it
  // reads the stored result.
  const withdrawing = withdrawCall(deps, { ...call, waitEntry: call.waiting, jobId: call.id })
  const end = (reach: Reach) =>
    endAsyncCall(deps, call, { head, reach, reply: (announcement) => sendReply(redis, call, announcement) })
  const endStarted = async (): Promise<void> => {
    const { isRemoved, reach } = await withdrawing
    // Otherwise the worker that has the call ends it.
    if (isRemoved) await end(reach)
    else await awaitRelease(deps, call)
  }
  const steps = await Promise.allSettled([withdrawing, storing.isStarted ? endStarted() : end('unsent')])
  for (const step of steps) {
    if (step.status === 'rejected')
      log.warn({ err: step.reason, callId: call.id }, 'failed to clean up after a cancelled call')
  }
  return true
}

/**
 * Waits until the worker has released the call, but not for long, so that the caller's next call
 * does not find the cancelled call in flight.
 */
async function awaitRelease({ redis }: CancelDeps, call: AsyncCall): Promise<void> {
  const end = performance.now() + RELEASE_MS_MAX
  while (performance.now() < end && (await isInFlight(redis, call))) await delay(RELEASE_CHECK_MS)
}
