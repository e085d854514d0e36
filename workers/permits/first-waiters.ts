import { groupOrAccountOf } from '../../src/queue/wait-queue-entry.ts'
import type { PermitWaiter } from './late-join.ts'

/** Waiters in one poll, lowest tags first; bounded per share, or a spent one would hide the others. */
const WAITERS_PER_POLL = 64
const WAITERS_PER_SHARE = 16

/** The waiters that a poll asks permits for. */
export function firstWaiters<W extends PermitWaiter>(byTag: W[]): W[] {
  if (byTag.length <= WAITERS_PER_SHARE) return [...byTag]
  const first: W[] = []
  const counts = new Map<string, number>()
  for (const waiter of byTag) {
    // On caps without shares a group is no share: its accounts have fewer waiters in a poll, and wait a poll longer at most.
    const share = groupOrAccountOf(waiter.member)
    const count = counts.get(share) ?? 0
    if (count >= WAITERS_PER_SHARE) continue
    counts.set(share, count + 1)
    first.push(waiter)
    if (first.length === WAITERS_PER_POLL) break
  }
  return first
}
