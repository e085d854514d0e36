import { refusalOf } from '../../src/caps/refusal.ts'
import type { QueueRefusal } from '../../src/caps/replies.ts'
import { SHARED_BUCKET, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { AttemptError } from '../errors/attempt-error.ts'

/**
 * What a call asks of a cap. If no permit is free, the call waits in the queue, which it joins if
 * it has no place there.
 */
export interface PermitRequest {
  entry: WaitQueueEntry
  /** Until when a permit is of use: Redis time, milliseconds. */
  deadline: number
  /** Of a call that joined the queue at admission: a repeat keeps its order. */
  tag?: number | undefined
  /**
   * For a call with a key that the upstream has not accepted yet: its request needs a permit of the
   * shared cap as well, because the upstream may count it for the gateway's address.
   */
  sharedCapRequest?: PermitRequest
  /**
   * Why a permit could not be used, now that the health of the upstream has changed; undefined if
   * it could.
   */
  refusalByHealth?: () => Error | undefined
}

/**
 * For a permit of the shared cap beside the permit of unproven keys: the same share, with a place
 * of its own.
 */
export function ofSharedCap({ entry, deadline }: PermitRequest): PermitRequest {
  return { entry: { ...entry, bucket: SHARED_BUCKET, coalescedKey: undefined }, deadline }
}

/**
 * A permit would come too late, for the reason that admission would give a new call. A call that
 * never had a place costs nothing.
 */
export function tooLateError({ hadPlace, ...refusal }: QueueRefusal & { hadPlace: boolean }): AttemptError {
  const { code, ...details } = refusalOf(refusal)
  return new AttemptError(code, { isRetryable: false, reach: hadPlace ? 'unsent' : 'refused', ...details })
}
