import type { UpstreamCaps } from '../caps/upstream-caps.ts'
import { announceCancel, type CallQueues, isJobWaiting, removeCall } from '../queue/call-queue.ts'
import type { QueueEntry } from '../queue/queue-entry.ts'
import type { RedisConnection } from '../redis/connection.ts'

export interface WithdrawDeps {
  redis: RedisConnection
  caps: UpstreamCaps
  queues: CallQueues
}

/** A call that was queued, and its entry in the wait queue where it has one. */
export interface QueuedCall {
  id: string
  slug: string
  waiting: QueueEntry | undefined
  /** Default: the call's own. Others may share it. */
  jobId?: string | undefined
}

/**
 * Takes a call that nobody waits for any more out of its queue, so that its place goes to the next one. When a worker
 * runs it already, the workers are told to abort it.
 *
 * @returns whether no worker had it yet
 */
export async function withdrawCall(
  { redis, caps, queues }: WithdrawDeps,
  { id, slug, waiting, jobId = id }: QueuedCall,
): Promise<boolean> {
  if (waiting) await caps.of({ slug }, waiting.bucket).leaveQueue(waiting)
  const isAlone = jobId === id
  if (isAlone && (await removeCall(queues, slug, id))) return true
  await announceCancel(redis, slug, id)
  // A shared job stays in the queue for its other calls; its worker leaves out those that nobody waits for.
  return !isAlone && (await isJobWaiting(queues, slug, jobId))
}
