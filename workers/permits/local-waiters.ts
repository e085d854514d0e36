import type { Waiter } from '../../src/caps/cap.ts'
import { groupOrAccountOf, memberOf, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import type { Permit } from './permits-in-use.ts'

/**
 * What a call asks of a cap. If no permit is free, the call waits in the queue, which it joins if
 * it has no place there.
 */
export type PermitRequest = WaitQueueEntry & Waiter

/** `tag`: of a call that joined the queue at admission; a repeat keeps its order. */
export function permitRequestOf(entry: WaitQueueEntry, deadline: number, tag?: number): PermitRequest {
  return { ...entry, member: memberOf(entry), deadline, tag }
}

/** How long a call waits for a permit, and what ends its wait. */
export interface PermitWait {
  remainingMs: () => number
  signal: AbortSignal
  /**
   * Why a permit could not be used, as far as this process knows the health of the upstream;
   * undefined if it could.
   */
  refusal?: () => Error | undefined
}

/** A call of this worker that waits for a permit. */
export interface LocalWaiter extends PermitRequest, PermitWait {
  /** The reply to a poll said that it has to wait. */
  hasWaited: boolean
  resolve: (permit: Permit) => void
  reject: (error: unknown) => void
  onAbort: () => void
}

/**
 * Waiters in one poll, lowest tags first; bounded per share, or a spent share would hide the
 * others.
 */
const WAITERS_PER_POLL = 64
const WAITERS_PER_SHARE = 16

/** Sorts waiters that have no tag. */
const NO_TAG = -1

/**
 * The calls of a worker that wait for permits of one cap, in the order of their tags. Waiters
 * without a tag come first.
 */
export class LocalWaiters {
  readonly #byMember = new Map<string, LocalWaiter>()
  readonly #byTag: LocalWaiter[] = []

  get size(): number {
    return this.#byMember.size
  }

  get all(): LocalWaiter[] {
    return [...this.#byTag]
  }

  get(member: string): LocalWaiter | undefined {
    return this.#byMember.get(member)
  }

  /**
   * Adds a waiter. It takes the place of an earlier run of the same call: the earlier run then gets
   * no permit.
   */
  add(waiter: LocalWaiter): void {
    const known = this.#byMember.get(waiter.member)
    if (known) this.remove(known)
    this.#byMember.set(waiter.member, waiter)
    const { tag = NO_TAG } = waiter
    const index = this.#byTag.findLastIndex((other) => (other.tag ?? NO_TAG) <= tag) + 1
    this.#byTag.splice(index, 0, waiter)
  }

  /** @returns whether it was there */
  remove(waiter: LocalWaiter): boolean {
    if (this.#byMember.get(waiter.member) !== waiter) return false
    this.#byMember.delete(waiter.member)
    this.#byTag.splice(this.#byTag.indexOf(waiter), 1)
    return true
  }

  /** The waiters that a poll asks permits for. */
  first(): LocalWaiter[] {
    if (this.#byTag.length <= WAITERS_PER_SHARE) return [...this.#byTag]
    const first: LocalWaiter[] = []
    const counts = new Map<string, number>()
    for (const waiter of this.#byTag) {
      // On caps without shares a group is no share: its accounts have fewer waiters in a poll, and
      // wait a poll longer at most.
      const share = groupOrAccountOf(waiter.member)
      const count = counts.get(share) ?? 0
      if (count >= WAITERS_PER_SHARE) continue
      counts.set(share, count + 1)
      first.push(waiter)
      if (first.length === WAITERS_PER_POLL) break
    }
    return first
  }
}
