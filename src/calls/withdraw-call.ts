import { leaveLine, type Waiting } from '../caps/wait-queue.ts'
import { announceCancel, type CallQueues, removeCall } from '../queue/call-queue.ts'
import type { RedisConnection } from '../redis/connection.ts'

export interface WithdrawDeps {
  redis: RedisConnection
  queues: CallQueues
}

/** A call that was queued, and its entry in the wait queue where it has one. */
export interface QueuedCall {
  id: string
  slug: string
  waiting: Waiting | undefined
}

/**
 * Takes a call that nobody waits for any more out of its queue, so that its place goes to the next one. When a worker
 * runs it already, the workers are told to abort it.
 */
export async function withdrawCall({ redis, queues }: WithdrawDeps, { id, slug, waiting }: QueuedCall): Promise<void> {
  if (waiting) await leaveLine(redis, waiting)
  if (!(await removeCall(queues, slug, id))) await announceCancel(redis, slug, id)
}
