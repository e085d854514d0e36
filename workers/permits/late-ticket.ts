import type { Cap, Waiter } from '../../src/caps/cap.ts'
import { refusalOf } from '../../src/caps/refusal.ts'
import type { Log } from '../../src/log.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { QueueEntry } from '../../src/queue/queue-entry.ts'
import { AttemptError } from '../upstream/attempt-error.ts'

/** There is no room for a call without a ticket: it must join the wait queue first. */
export class TicketNeededError extends Error {}

/** A call's wish for a permit. */
export interface PermitRequest extends Waiter {
  /** Of a call without a ticket: how it joins the wait queue when it must, and until when a permit is of use. */
  late?: { entry: QueueEntry; deadline: CallJob['deadline'] }
}

/**
 * Acquires a permit. A call that came without a ticket, because a stored answer was expected or its cap had room, gets one
 * at once where nothing waits. Else it joins the wait queue now, behind those that wait already.
 *
 * @throws what `acquire` throws; AttemptError with the wait that the call would have, where that is too long for it
 */
export async function acquireWithTicket<Permit>(
  { cap, log }: { cap: Cap; log: Log },
  { late, ...waiter }: PermitRequest,
  acquire: (waiter: Waiter) => Promise<Permit>,
): Promise<Permit> {
  try {
    return await acquire(waiter)
  } catch (error) {
    if (!(error instanceof TicketNeededError) || !late) throw error
  }
  const { entry, deadline } = late
  const joined = await cap.joinQueue(entry, deadline)
  if ('refused' in joined) {
    const { code, ...details } = refusalOf(joined)
    throw new AttemptError(code, { isRetryable: false, isRefusal: true, ...details })
  }
  try {
    return await acquire({ ...waiter, tag: joined.tag })
  } catch (error) {
    cap
      .leaveQueue(entry)
      .catch((cause) => log.debug({ err: cause, callId: entry.callId }, 'failed to leave the wait queue'))
    throw error
  }
}
