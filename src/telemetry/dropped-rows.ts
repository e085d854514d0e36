import type { Counter } from 'prom-client'

/**
 * Why an ended call has no row in the log of calls: Postgres was slow or away, the day's part of
 * CALL_LOG_MEGABYTES is used up, or the account had too many refused calls in a minute.
 */
export type DropReason = 'postgres' | 'size' | 'account'

/** Rows that were dropped for one reason, until nothing was dropped for it for five minutes. */
export interface DroppedLately {
  reason: DropReason
  rows: number
  /** Redis' time, milliseconds since the epoch. */
  lastAt: number
}

/** After so long without a dropped row the count begins anew, milliseconds. */
const QUIET_MS = 300_000

/** Counts the rows of the call log that this process dropped, for metrics and its heartbeat. */
export class DroppedRows {
  readonly #counter: Pick<Counter<'reason'>, 'inc'>
  readonly #now: () => number
  readonly #lately = new Map<DropReason, DroppedLately>()

  /** @param now Redis' time, milliseconds since the epoch */
  constructor(counter: Pick<Counter<'reason'>, 'inc'>, now: () => number) {
    this.#counter = counter
    this.#now = now
  }

  add(reason: DropReason, rows = 1): void {
    this.#counter.inc({ reason }, rows)
    const before = this.lately().find((dropped) => dropped.reason === reason)
    this.#lately.set(reason, { reason, rows: rows + (before?.rows ?? 0), lastAt: this.#now() })
  }

  lately(): DroppedLately[] {
    const now = this.#now()
    return [...this.#lately.values()].filter(({ lastAt }) => now - lastAt < QUIET_MS)
  }
}
