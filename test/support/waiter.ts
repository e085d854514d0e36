import type { Waiter } from '../../src/caps/cap.ts'

/** Later than any time of a test, milliseconds. */
const NEVER = 4_000_000_000_000

/**
 * A waiter whose deadline never comes. A waiter with a tag has had a place in the queue, or repeats
 * a request.
 */
export function waiterOf(member: string, tag?: number): Waiter {
  return { member, tag, weight: 1, deadline: NEVER }
}
