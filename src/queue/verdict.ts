import { ERRORS, type ErrorCode } from '../errors.ts'

/**
 * How far the requests of a call got. A call only moves forward in this list, except from
 * `maybe-sent` to `unsent` if it followed the request of another process and that request brought
 * no answer.
 * - `refused`: the gateway refused the call as admission does, before anything was sent for it.
 * - `unsent`: no request was sent, or none that a process knows of.
 * - `maybe-sent`: it is unknown whether a request was sent, for example because a worker died.
 * - `sent`: the first byte of the call's own or shared request was written.
 * - `answered`: the upstream answered.
 */
export type Reach = 'refused' | 'unsent' | 'maybe-sent' | 'sent' | 'answered'

const ORDER: readonly Reach[] = ['refused', 'unsent', 'maybe-sent', 'sent', 'answered']

export function hasReached(reach: Reach, least: Reach): boolean {
  return ORDER.indexOf(reach) >= ORDER.indexOf(least)
}

export function furthestReach(one: Reach, other: Reach): Reach {
  return hasReached(one, other) ? one : other
}

/** How a call ended, for its account. */
export interface Verdict {
  reach: Reach
  /** Undefined for success. */
  code?: ErrorCode | undefined
}

/**
 * Which of the units that a call took its account gets back. `month`: the units of the account's
 * and of the credential's month.
 */
export type Refund = 'nothing' | 'month' | 'all'

/** The status in usage, log and metrics of a call whose caller has left (nginx uses the same). */
export const CALLER_LEFT_STATUS = 499

/** The status in usage, log and metrics of a call that its worker or a cancellation ended. */
export function shownStatusOf({ code }: Pick<Verdict, 'code'>): number {
  if (code === undefined) return 200
  return code === 'CALL_CANCELLED' ? CALLER_LEFT_STATUS : ERRORS[code].status
}

/**
 * What the account gets back when the call ends. Calls below 500 count for the month, except a call
 * that was cancelled before a request was sent, because it cost the upstream nothing. `db/usage.ts`
 * uses the same rule to count the calls of a month.
 */
export function refundOf({ code, reach }: Verdict): Refund {
  if (reach === 'refused') return 'all'
  if (code === 'CALL_CANCELLED' && !hasReached(reach, 'maybe-sent')) return 'month'
  return shownStatusOf({ code }) < 500 ? 'nothing' : 'month'
}
