import { SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { type Cap, NO_PLACE, type Waiter } from '../../src/caps/cap.ts'
import { refusalOf } from '../../src/caps/refusal.ts'
import type { Log } from '../../src/log.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { AttemptError } from '../upstream/attempt-error.ts'
import { LOCK_LOST } from '../upstream/call-end.ts'

/** There is no room for a call that has no place: it must join the wait queue first. */
export class PlaceNeededError extends Error {}

export interface PermitWaiter extends Waiter {
  /** The queue may not know it, so that nothing evicts it (an earlier permit used up its place, a worker was lost with it, it shared another call's): the client rejects it. */
  mayLackPlace?: boolean
  hasWaited?: boolean
  /** Why a permit could not be used, now that the health of the upstream has changed; undefined where it could. */
  refusalByHealth?: () => Error | undefined
}

export interface PermitRequest extends PermitWaiter {
  /** With a key that the upstream has not taken yet: it may count the request for the gateway's address. */
  ofShared?: PermitRequest
  /** Of a call without a place: how it joins the wait queue when it must, and until when a permit is of use. */
  lateJoin?: { entry: () => WaitQueueEntry; deadline: CallJob['deadline']; isSecondRun?: boolean }
}

/** For a permit of the shared cap beside the one of unproven keys: a member of the same share, which joins the queue if it must. */
export function ofSharedCap({ member, lateJoin }: Required<Pick<PermitRequest, 'member' | 'lateJoin'>>): PermitRequest {
  const entry = (): WaitQueueEntry => ({ ...lateJoin.entry(), bucket: SHARED_BUCKET, coalescedKey: undefined })
  return { member, tag: NO_PLACE, lateJoin: { ...lateJoin, entry } }
}

/** A permit would come too late, for the reason that admission would give a new call. `isRefused`: it never had a place, and costs nothing. */
export function tooLateError(
  refusal: Parameters<typeof refusalOf>[0],
  { isRefused }: { isRefused: boolean },
): AttemptError {
  const { code, ...details } = refusalOf(refusal)
  return new AttemptError(code, { isRetryable: false, isRefused, ...details })
}

/** Acquires a permit. A call without a place joins the wait queue first, unless there is room. @throws AttemptError */
export async function acquireOrJoin<Permit>(
  { cap, log }: { cap: Cap; log: Log },
  { lateJoin, ofShared: _ofShared, ...waiter }: PermitRequest,
  acquire: (waiter: PermitWaiter) => Promise<Permit>,
): Promise<Permit> {
  try {
    return await acquire(waiter)
  } catch (error) {
    if (!(error instanceof PlaceNeededError) || !lateJoin) throw error
  }
  const entry = lateJoin.entry()
  // Leaves the first run's place, or clears its eviction; not earlier, as a request shared with others may wait in it.
  if (lateJoin.isSecondRun) await cap.leaveWaitQueue(entry)
  const joined = await cap.joinWaitQueue(entry, lateJoin.deadline)
  if ('reason' in joined) throw tooLateError(joined, { isRefused: true })
  try {
    return await acquire({ ...waiter, tag: joined.tag, mayLackPlace: joined.isFollower, hasWaited: true })
  } catch (error) {
    // The run that has the job now may have joined under the same member: leaving would take its place away.
    if (error === LOCK_LOST) throw error
    cap
      .leaveWaitQueue(entry)
      .catch((cause) => log.debug({ err: cause, callId: entry.callId }, 'failed to leave the wait queue'))
    throw error
  }
}
