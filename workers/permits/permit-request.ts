import type { Waiter } from '../../src/caps/cap.ts'
import { refusalOf } from '../../src/caps/refusal.ts'
import type { QueueRefusal } from '../../src/caps/replies.ts'
import { memberOf, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { AttemptError } from '../errors/attempt-error.ts'

/**
 * What a call asks of a cap. If no permit is free, the call waits in the queue, which it joins if
 * it has no place there.
 */
export type PermitRequest = WaitQueueEntry & Waiter

/** `tag`: of a call that joined the queue at admission; a repeat keeps its order. */
export function permitRequestOf(entry: WaitQueueEntry, deadline: number, tag?: number): PermitRequest {
  return { ...entry, member: memberOf(entry), deadline, tag }
}

/**
 * A permit would come too late, for the reason that admission would give a new call. A call that
 * never had a place costs nothing.
 */
export function tooLateError({ hadPlace, ...refusal }: QueueRefusal & { hadPlace: boolean }): AttemptError {
  const { code, ...details } = refusalOf(refusal)
  return new AttemptError(code, { isRetryable: false, reach: hadPlace ? 'unsent' : 'refused', ...details })
}
