import type { Refund } from './end-calls.ts'

/** Whether a call that usage counts under this status keeps its unit of the month; `db/usage.ts` counts by the same rule. */
export function isCharged(usageStatus: number): boolean {
  return usageStatus < 500
}

/** What a call that was not refused gives back. */
export function refundOf(usageStatus: number): Refund {
  return isCharged(usageStatus) ? 'nothing' : 'month'
}
