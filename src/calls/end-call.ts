import type { Principal } from '../admission/authenticate.ts'
import type { GatewayError } from '../errors.ts'
import { replyError } from '../http/answer/call-answer.ts'
import type { CallEndBatcher } from '../limits/call-end-batcher.ts'
import { type EndStep, type NextCall, NOTHING_ENDED } from '../limits/end-calls.ts'
import type { CallJob } from '../queue/call-job.ts'
import { type CallArrival, type RecordDeps, recordCall } from '../telemetry/record-call.ts'
import type { CallResult, FinalResult } from './pending-call.ts'

/** A call whose caller waits on this node, and its outcome. */
export interface AwaitedCall {
  arrival: CallArrival
  job: CallJob
  principal: Principal
  /**
   * Duration of admission, and the wait that it forecast, milliseconds. Absent if the call was
   * refused before it was queued.
   */
  admission?: { admissionMs: number; quotedMs: number }
  end: CallResult
}

export interface NodeEndDeps extends RecordDeps {
  callEnds: Pick<CallEndBatcher, 'end'>
}

/**
 * Ends a call whose caller waits on this node: for its account (limits and usage) and for operators
 * (trace, count, log). An asynchronous call is ended for its account by its worker, unless the call
 * could not be queued.
 *
 * @returns as `CallEndBatcher.end`
 */
export function endCall(
  deps: NodeEndDeps,
  { arrival, job, principal, admission, end }: AwaitedCall,
  next?: NextCall,
): Promise<EndStep> {
  const isAccepted = end.kind === 'accepted'
  const isEndedByWorker = job.isAsync && end.kind !== 'failed'
  recordCall(deps, arrival, {
    ...admission,
    target: job,
    principal,
    callId: job.id,
    statusWithoutError: isAccepted ? 202 : 200,
    error: isAccepted ? undefined : errorOf(end),
    reply: end.kind === 'reply' ? end.reply : undefined,
    isEndedByWorker,
  })
  if (isAccepted || isEndedByWorker) return NOTHING_ENDED
  return deps.callEnds.end(job, end.verdict, next)
}

/** Why a call failed; undefined for a success. */
export function errorOf(end: FinalResult): GatewayError | undefined {
  if (end.kind === 'failed') return end.error
  const { head } = end.reply
  return head.code && replyError(head)
}
