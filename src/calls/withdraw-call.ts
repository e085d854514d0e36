import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import type { UpstreamCaps } from '../caps/upstream-caps.ts'
import { announceCancel, type CallQueues, isJobWaiting, removeCall } from '../queue/call-queue.ts'
import { type Reply, reachOf } from '../queue/reply-head.ts'
import type { Reach } from '../queue/verdict.ts'
import type { WaitQueueEntry } from '../queue/wait-queue-entry.ts'
import type { RedisConnection } from '../redis/connection.ts'

export interface WithdrawDeps {
  redis: RedisConnection
  caps: UpstreamCaps
  queues: CallQueues
}

export interface CallToWithdraw {
  id: string
  slug: string
  waitEntry: WaitQueueEntry | undefined
  /**
   * The job of the call, which other calls may share. Undefined if it is unknown whether the call
   * was queued.
   */
  jobId: string | undefined
}

/** How long to wait for the worker's reply about a call whose caller left, milliseconds. */
const REPLY_MS_MAX = 5_000

/** The result of withdrawing a call. */
export interface Withdrawal {
  /** Whether the call is out of its lane, so that no worker will reply to it. */
  isRemoved: boolean
  /**
   * How far its requests got, unless a reply says otherwise. `unsent`: no worker had begun with the
   * call.
   */
  reach: 'unsent' | 'maybe-sent'
}

/**
 * Removes a call for which nobody waits from its lane, or aborts it if a worker runs it.
 *
 * @throws what Redis throws; the step can be repeated
 */
export async function withdrawCall(
  deps: WithdrawDeps,
  { id, slug, waitEntry, jobId }: CallToWithdraw,
): Promise<Withdrawal> {
  const { redis, queues } = deps
  const isAlone = jobId === undefined || jobId === id
  const removed = isAlone ? await removeCall(queues.of(slug), id) : undefined
  if (removed) {
    if (waitEntry) await deps.caps.leaveWaitQueue(waitEntry)
    // The worker that had begun with the call died, or has just ended the call.
    return { isRemoved: true, reach: removed.isStarted ? 'maybe-sent' : 'unsent' }
  }
  await announceCancel(redis, slug, id)
  // A shared job stays for its other calls. Its worker skips calls for which nobody waits.
  const isInSharedJob = !isAlone && (await isJobWaiting(queues.of(slug), jobId))
  // The worker with the job removes the call from the wait queue, unless identical calls wait in
  // its place.
  if (waitEntry && (isInSharedJob || jobId === undefined)) await deps.caps.leaveWaitQueue(waitEntry)
  // If the call is not in the lane, a worker has it, or it has ended, or it never arrived there.
  return { isRemoved: false, reach: isInSharedJob ? 'unsent' : 'maybe-sent' }
}

/**
 * Tells how far the requests of a withdrawn call got. If the worker's reply comes, it decides. If
 * the job was removed from the queue, do not wait for a reply; use a reply only if it has already
 * arrived.
 */
export async function awaitReach({ isRemoved, reach }: Withdrawal, reply: Promise<Reply>): Promise<Reach> {
  const replied = reply.then(
    ({ head }) => reachOf(head),
    () => undefined,
  )
  const waited = isRemoved ? setImmediate() : delay(REPLY_MS_MAX, undefined, { ref: false })
  return (await Promise.race([replied, waited])) ?? reach
}
