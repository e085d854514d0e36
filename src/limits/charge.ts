/** Whether a call that ended with this status keeps its unit of the month; `db/usage.ts` counts by the same rule. */
export function isCharged(status: number): boolean {
  return status < 500
}
