import type { PermitId } from '../../src/caps/replies.ts'
import { PERMIT_AGE_MS_MAX } from '../../src/caps/timing.ts'

/** Most permits that a poll acquires ahead. */
export const AHEAD_MAX = 16

/** Time that a permit still needs for the connection and the first byte, milliseconds. */
const SENDING_MS = 50

/**
 * How long permits ahead wait for calls, milliseconds: as many calls are expected within this time
 * as came within it.
 */
export const AHEAD_LIFE_MS = PERMIT_AGE_MS_MAX - SENDING_MS

interface PermitAhead {
  id: PermitId
  /** By the monotonic clock, milliseconds. */
  usableUntil: number
}

/**
 * Permits of one cap that a poll acquired in addition to the permits of its waiters, for calls that
 * come soon. A poll acquires as many as calls came within the last `AHEAD_LIFE_MS`. The permits are
 * in the cap's log and leases from the poll on, so the cap holds even if this worker dies. The
 * worker releases a permit that no call takes in time.
 */
export class PermitsAhead {
  readonly #max: number
  readonly #onEnd: (unused: PermitId[]) => void
  #ids: PermitId[] = []
  #mayBeUsed = (): boolean => false
  #usableUntil = 0
  #timer: NodeJS.Timeout | undefined
  /** When calls without a place last requested permits; the latest time is the last. */
  #wantedAt: number[] = []

  /** `onEnd` gets the permits that no call took. `max`: 0 if no permits are acquired ahead. */
  constructor(max: number, onEnd: (unused: PermitId[]) => void) {
    this.#max = max
    this.#onEnd = onEnd
  }

  /** How many permits a poll acquires ahead, besides the permits for the `waiting` calls. */
  wanted(waiting: number): number {
    if (this.#ids.length > 0) return 0
    const since = performance.now() - AHEAD_LIFE_MS
    return Math.max(0, this.#wantedAt.filter((at) => at > since).length - waiting)
  }

  noteCall(): void {
    this.#wantedAt.push(performance.now())
    if (this.#wantedAt.length > this.#max) this.#wantedAt.shift()
  }

  take(): PermitAhead | undefined {
    if (!this.#mayBeUsed() || performance.now() >= this.#usableUntil - SENDING_MS) return undefined
    const id = this.#ids.shift()
    return id === undefined ? undefined : { id, usableUntil: this.#usableUntil }
  }

  /** `mayBeUsed`: whether the cap is still as the poll found it, as far as this process knows. */
  keep(ids: PermitId[], { usableUntil, mayBeUsed }: { usableUntil: number; mayBeUsed: () => boolean }): void {
    if (ids.length === 0) return
    this.#ids = ids
    this.#usableUntil = usableUntil
    this.#mayBeUsed = mayBeUsed
    this.#timer = setTimeout(() => this.giveBack(), Math.max(0, usableUntil - SENDING_MS - performance.now()))
  }

  giveBack(): void {
    this.#onEnd(this.drain())
  }

  drain(): PermitId[] {
    clearTimeout(this.#timer)
    return this.#ids.splice(0)
  }
}
