import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import { leaveWaitQueue } from '../caps/leave-wait-queue.ts'
import type { UpstreamCaps } from '../caps/upstream-caps.ts'
import type { Log } from '../log.ts'
import { announceCancel, type CallQueues, isJobWaiting, removeCall } from '../queue/call-queue.ts'
import { type Reply, wasRequestSent } from '../queue/reply-head.ts'
import type { WaitQueueEntry } from '../queue/wait-queue-entry.ts'
import type { RedisConnection } from '../redis/connection.ts'

export interface WithdrawDeps {
  redis: RedisConnection
  caps: Pick<UpstreamCaps, 'of'>
  queues: CallQueues
}

export interface CallToWithdraw {
  id: string
  slug: string
  waitEntry: WaitQueueEntry | undefined
  /** Others may share it. Undefined where it is not known whether the call was queued. */
  jobId: string | undefined
}

/** How long to wait for the worker's reply about a call whose caller left, milliseconds. */
const REPLY_MS_MAX = 5_000

/** Where a call was when it was withdrawn. `removed-started`: a worker had begun with it, and was lost or has just ended it. `maybe-taken`: not in the queue, because a worker has it, it has ended, or it never came there. */
export type Withdrawal = 'removed' | 'removed-started' | 'in-shared-job' | 'maybe-taken'

/** Takes a call that nobody waits for out of its queue, or aborts it where a worker runs it. @throws what Redis throws: it can be repeated */
export async function withdrawCall(
  deps: WithdrawDeps,
  { id, slug, waitEntry, jobId }: CallToWithdraw,
): Promise<Withdrawal> {
  const { redis, queues } = deps
  const isAlone = jobId === undefined || jobId === id
  const removed = isAlone ? await removeCall(queues.of(slug), id) : undefined
  if (removed) {
    if (waitEntry) await leaveWaitQueue(deps, waitEntry)
    return removed.isStarted ? 'removed-started' : 'removed'
  }
  await announceCancel(redis, slug, id)
  // A shared job stays for its other calls; its worker skips those that nobody waits for.
  const isInSharedJob = !isAlone && (await isJobWaiting(queues.of(slug), jobId))
  // The worker that has the job takes the call out of the wait queue, unless identical calls wait in its place.
  if (waitEntry && (isInSharedJob || jobId === undefined)) await leaveWaitQueue(deps, waitEntry)
  return isInSharedJob ? 'in-shared-job' : 'maybe-taken'
}

/** Withdraws a call that failed, in the background and again while Redis is away: its place would hold up others until its deadline, and its job, which Redis may have queued without saying so, would send a request for nobody. */
export function withdrawFailed(deps: WithdrawDeps & { log: Log }, call: CallToWithdraw): void {
  const repeating = { ...RESTART_RETRY, mayRepeat: () => deps.redis.status !== 'end' }
  retryUntil(() => withdrawCall(deps, call), repeating).catch((error) =>
    deps.log.debug({ err: error, callId: call.id }, 'failed to withdraw a call'),
  )
}

/** Whether a request may have been sent: the worker's reply says so; where none comes, whether a worker had the call. After a removal only a reply counts that is there already, because the call ended meanwhile. */
export async function awaitWasSent(withdrawal: Withdrawal, reply: Promise<Reply>): Promise<boolean> {
  const replied = reply.then(
    ({ head }) => wasRequestSent(head),
    () => undefined,
  )
  const isRemoved = withdrawal === 'removed' || withdrawal === 'removed-started'
  const waited = isRemoved ? setImmediate() : delay(REPLY_MS_MAX, undefined, { ref: false })
  const isSent = await Promise.race([replied, waited])
  return isSent ?? (withdrawal === 'maybe-taken' || withdrawal === 'removed-started')
}
