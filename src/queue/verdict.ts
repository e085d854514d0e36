import { ERRORS, type ErrorCode } from '../errors.ts'

/**
 * How far the requests of a call got. A call never goes back, except from `maybe-sent` to `unsent`
 * if it followed the request of another process, and that request brought no answer.
 * - `refused`: the gateway refused the call as admission does, before anything was sent for it.
 * - `unsent`: no request was sent, or none that a process knows of.
 * - `maybe-sent`: nobody knows, for example because a worker was lost.
 * - `sent`: the first byte of a request, or of a request that the call shares, was written.
 * - `answered`: the upstream answered.
 */
export type Reach = 'refused' | 'unsent' | 'maybe-sent' | 'sent' | 'answered'

const ORDER: readonly Reach[] = ['refused', 'unsent', 'maybe-sent', 'sent', 'answered']

export function hasReached(reach: Reach, least: Reach): boolean {
  return ORDER.indexOf(reach) >= ORDER.indexOf(least)
}

export function furthest(one: Reach, other: Reach): Reach {
  return hasReached(one, other) ? one : other
}

/** How a call ended for its account. */
export interface Verdict {
  reach: Reach
  /** Undefined for a success. */
  code?: ErrorCode | undefined
}

/**
 * What an account gets back of the units that a call took. `month`: its units of the account's and
 * of the credential's month.
 */
export type Refund = 'nothing' | 'month' | 'all'

/**
 * The status that log and metrics show of a call that nobody waits for any more (as nginx shows
 * it).
 */
export const CALLER_LEFT_STATUS = 499

/** What log and metrics show of a call that its worker, or its cancelling, ended. */
export function shownStatusOf({ code }: Pick<Verdict, 'code'>): number {
  if (code === undefined) return 200
  return code === 'CALL_CANCELLED' ? CALLER_LEFT_STATUS : ERRORS[code].status
}

/**
 * The status that usage counts a call under. Calls below 500 count for the month, so a cancelled
 * call for which no request was sent has 503 here: it cost the upstream nothing.
 */
export function usageStatusOf({ code, reach }: Verdict): number {
  if (code === 'CALL_CANCELLED' && !hasReached(reach, 'maybe-sent')) return 503
  return shownStatusOf({ code })
}

/**
 * What the account gets back when the call ends. `db/usage.ts` counts the calls of a month by the
 * same rule.
 */
export function refundOf(verdict: Verdict): Refund {
  if (verdict.reach === 'refused') return 'all'
  return usageStatusOf(verdict) < 500 ? 'nothing' : 'month'
}
