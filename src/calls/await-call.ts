import type { Admitted } from '../admission/admit.ts'
import { countRefusal, type RefusalDeps } from '../admission/count-refusal.ts'
import { GatewayError, toGatewayError } from '../errors.ts'
import type { CallerSocket } from '../http/caller-socket.ts'
import type { CallCompletionBatcher } from '../limits/call-completion-batcher.ts'
import { endCalls } from '../limits/end-calls.ts'
import type { Log } from '../log.ts'
import { recordAsyncCall } from '../queue/async-call.ts'
import type { ReplyInbox } from '../queue/reply.ts'
import type { Reply } from '../queue/reply-head.ts'
import { CallerLeftError, LEFT_UNSENT_STATUS, usageStatusOfCancelled, usageStatusOfReply } from './call-status.ts'
import { awaitWasSent, type Withdrawal, type WithdrawDeps, withdrawCall, withdrawFailed } from './withdraw-call.ts'

export interface AwaitDeps extends WithdrawDeps, RefusalDeps {
  config: { callTimeoutMs: number }
  replies: Pick<ReplyInbox, 'awaitReply'>
  completions: Pick<CallCompletionBatcher, 'add' | 'addOnceKnown' | 'compensate' | 'countRefusal'>
  log: Log
}

/** `pending`: the call goes on, and its result is kept. Refused: all that it took is given back. */
export type CallEnd =
  | { kind: 'reply'; reply: Reply }
  | { kind: 'pending' }
  | { kind: 'failed'; error: GatewayError; isRefused: boolean }

/** How long after the deadline a node waits for the worker's own reply, milliseconds. */
export const DEADLINE_GRACE_MS = 250

/** Abort reason of an asynchronous call: the caller preferred not to wait any longer. */
const STILL_RUNNING = new Error('the call goes on')

/** Queues a call and waits for its reply, until its deadline or until the caller leaves. Completes the call (releases its limits and counts it); where it is asynchronous and queued, its worker does. Never throws. */
export async function enqueueAndAwait(deps: AwaitDeps, admitted: Admitted, socket: CallerSocket): Promise<CallEnd> {
  const { job, queueing } = admitted
  const waitMs = waitMsOf(deps, admitted)
  const { reply, forget } = deps.replies.awaitReply(job.id)
  const wait = limitWait(socket, waitMs, () => (job.isAsync ? STILL_RUNNING : new GatewayError('DEADLINE_EXCEEDED')))
  let jobId: string | undefined
  let isReplyAwaited = false
  try {
    wait.throwIfOver()
    if (job.isAsync) await recordAsyncCall(deps.redis, job, queueing.waitEntry)
    jobId = await deps.queues.enqueue({ call: job, mayShareJob: queueing.mayShareJob })
    if (waitMs === 0) return { kind: 'pending' }
    const answer = await Promise.race([reply, wait.over])
    if (answer.head.isRefused) await refundRefused(deps, admitted, usageStatusOfReply(answer.head))
    else if (!job.isAsync) deps.completions.add(job, usageStatusOfReply(answer.head))
    return { kind: 'reply', reply: answer }
  } catch (thrown) {
    // Even when this node is shutting down: the call's worker completes it.
    if (job.isAsync && jobId !== undefined) return { kind: 'pending' }
    if (thrown instanceof CallerLeftError && jobId !== undefined) {
      isReplyAwaited = true
      deps.completions.addOnceKnown(job, withdrawLeft(deps, admitted, { reply, jobId }).finally(forget))
      return { kind: 'failed', error: thrown, isRefused: false }
    }
    const error = toGatewayError(thrown)
    const isRefused = error.code === 'RESULT_STORAGE_FULL'
    await completeFailed(deps, admitted, { error, isRefused, jobId })
    return { kind: 'failed', error, isRefused }
  } finally {
    queueing.giveSpareRoomBack?.()
    wait.end()
    if (!isReplyAwaited) forget()
  }
}

/** How long the caller waits, milliseconds; 0 for one that wants 202 at once. */
function waitMsOf({ config: { callTimeoutMs } }: AwaitDeps, { preference: { waitMs } }: Admitted): number {
  return waitMs ?? callTimeoutMs + DEADLINE_GRACE_MS
}

interface CallerWait {
  /** Rejects when the caller leaves, or after the wait with the reason of `onTimeout`; never resolves. */
  over: Promise<never>
  throwIfOver: () => void
  end: () => void
}

/** How long a caller waits. A signal with its controller and listeners would cost several times as much on every call. */
function limitWait(socket: CallerSocket, waitMs: number, onTimeout: () => Error): CallerWait {
  const { promise: over, reject } = Promise.withResolvers<never>()
  // It may be over before anybody listens.
  over.catch(() => undefined)
  let reason: Error | undefined
  const endWith = (error: Error): void => {
    reason ??= error
    reject(error)
  }
  const onClose = () => endWith(new CallerLeftError())
  const timer = setTimeout(() => endWith(onTimeout()), waitMs)
  // The caller may have left during admission.
  if (socket.destroyed) onClose()
  else socket.once('close', onClose)
  return {
    over,
    throwIfOver: () => {
      if (reason) throw reason
    },
    end: () => {
      clearTimeout(timer)
      socket.off('close', onClose)
    },
  }
}

async function completeFailed(
  deps: AwaitDeps,
  admitted: Admitted,
  { error, isRefused, jobId }: { error: GatewayError; isRefused: boolean; jobId: string | undefined },
): Promise<void> {
  const { job, queueing } = admitted
  if (isRefused) await refundRefused(deps, admitted, error.status)
  else deps.completions.add(job, error instanceof CallerLeftError ? LEFT_UNSENT_STATUS : error.status)
  withdrawFailed(deps, { id: job.id, slug: job.slug, waitEntry: queueing.waitEntry, jobId })
}

/** A refusal costs nothing: gives back all that the call acquired, and counts it as refused. */
async function refundRefused(deps: AwaitDeps, { job, principal }: Admitted, status: number): Promise<void> {
  countRefusal(deps, principal, { slug: job.slug, status })
  const { id: callId, limitsAcquiredAt: at, keyId } = job
  await endCalls(deps.redis, principal, { calls: [{ callId, at, keyId, refund: 'all' }] }).catch(() =>
    deps.completions.compensate({ account: principal, callIds: [callId], at }),
  )
}

/** Withdraws a call whose caller left. @returns its usage status: it is charged where a request was sent for it, or where that is not known */
async function withdrawLeft(
  deps: AwaitDeps,
  admitted: Admitted,
  { reply, jobId }: { reply: Promise<Reply>; jobId: string | undefined },
): Promise<number> {
  const isSent = await withdraw(deps, admitted, jobId).then(
    (withdrawal) => awaitWasSent(withdrawal, reply),
    () => true,
  )
  return usageStatusOfCancelled(isSent)
}

/** @throws what Redis throws: the call then runs to its deadline, in vain */
async function withdraw(deps: AwaitDeps, { job, queueing }: Admitted, jobId: string | undefined): Promise<Withdrawal> {
  try {
    return await withdrawCall(deps, { id: job.id, slug: job.slug, waitEntry: queueing.waitEntry, jobId })
  } catch (error) {
    deps.log.debug({ err: error, callId: job.id }, 'failed to withdraw a call')
    throw error
  }
}
