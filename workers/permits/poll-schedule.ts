/** Longest pause between polls, milliseconds: a poll also keeps the waiters' entries alive. */
export const POLL_INTERVAL_MS = 500

/**
 * Poll interval while another request must end first, for a lost wake-up or an expired lease.
 * Milliseconds.
 */
const FALLBACK_POLL_MS = 200

/** Pause after a poll that answered all its waiters. Waiters that it had no room for come next. */
export const POLL_AT_ONCE = 0

/** Shortest pause between polls, so that a poll serves several slots of a rate. Milliseconds. */
const POLL_MS_MIN = 5

/** When a worker polls Redis for the permits of one cap: one poll at a time. */
export class PollSchedule {
  readonly #poll: () => Promise<void>
  isPolling = false
  #pollAgain = false
  #timer: NodeJS.Timeout | undefined

  /** `poll` never rejects, and calls `end`. */
  constructor(poll: () => Promise<void>) {
    this.#poll = poll
  }

  /**
   * Polls at the end of this tick, so that the waiters and released permits of one tick go into one
   * poll; if a poll is under way, directly after it.
   */
  pollSoon(): void {
    this.stop()
    if (this.isPolling) {
      this.#pollAgain = true
      return
    }
    this.isPolling = true
    setImmediate(() => {
      this.#pollAgain = false
      void this.#poll()
    })
  }

  pollIn(pauseMs: number): void {
    this.stop()
    this.#timer = setTimeout(() => this.pollSoon(), pauseMs)
  }

  /** Forgets the poll that is due later. */
  stop(): void {
    clearTimeout(this.#timer)
  }

  /** A poll has ended. `pauseMs`: until the next poll; undefined if no poll is needed. */
  end(pauseMs: number | undefined): void {
    this.isPolling = false
    if (this.#pollAgain) this.pollSoon()
    else if (pauseMs !== undefined) this.pollIn(pauseMs)
  }
}

/** The pause before the next poll if the cap says that it has room in `retryInMs`, milliseconds. */
export function pauseUntil(retryInMs: number): number {
  if (retryInMs <= 0) return FALLBACK_POLL_MS
  return Math.min(Math.max(retryInMs, POLL_MS_MIN), POLL_INTERVAL_MS)
}
