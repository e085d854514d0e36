import type { Waiter } from '../../src/caps/cap.ts'

/** Later than any time of a test, milliseconds. */
const NEVER = 4_000_000_000_000

/** A waiter with all the time that there is; with a tag it had a place, or is a repeat. */
export function waiterOf(member: string, tag?: number): Waiter {
  return { member, tag, weight: 1, deadline: NEVER }
}
