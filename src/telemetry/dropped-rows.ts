import type { Counter } from 'prom-client'

/**
 * Why an ended call has no row in the log of calls: Postgres was slow or away (`postgres`), the
 * day's quota of CALL_LOG_MEGABYTES is used up (`size`), or the account had too many refused calls
 * in a minute (`account`).
 */
export type DropReason = 'postgres' | 'size' | 'account'

/**
 * Rows that were dropped for one reason. The count starts again after five minutes without a
 * dropped row.
 */
export interface DroppedLately {
  reason: DropReason
  rows: number
  /** Redis' time, milliseconds since the epoch. */
  lastAt: number
}

/** If no row was dropped for so long, the count starts again, milliseconds. */
const QUIET_MS = 300_000

/** Counts the rows that this process dropped, for its metrics and its heartbeat. */
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
