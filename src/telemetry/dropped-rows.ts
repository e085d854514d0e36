import type { Counter } from 'prom-client'

/**
 * Why an ended call has no row in the log of calls: Postgres was slow or away (`postgres`), the
 * day's quota of CALL_LOG_MEGABYTES is used up (`size`), or the account had too many refused calls
 * in a minute (`account`).
 */
export type DropReason = 'postgres' | 'size' | 'account'

/**
 * Rows that were dropped for one reason, or rows that wait because Postgres does not accept them.
 * The count of dropped rows starts again after five minutes without a dropped row.
 */
export interface DroppedLately {
  reason: DropReason | 'waiting'
  rows: number
  /** Redis' time, milliseconds since the epoch. */
  lastAt: number
}

/** If no row was dropped for so long, the count starts again, milliseconds. */
const QUIET_MS = 300_000

/**
 * Rows that wait for a shorter time are not reported, milliseconds. A restart of Postgres takes
 * less time.
 */
const WAITING_MS = 5_000

/** Counts the rows that this process dropped or cannot write, for metrics and heartbeat. */
export class DroppedRows {
  readonly #counter: Pick<Counter<'reason'>, 'inc'>
  readonly #now: () => number
  readonly #lately = new Map<DroppedLately['reason'], DroppedLately>()
  #waiting: { rows: number; since: number } | undefined

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

  /** Notes how many rows wait after Postgres refused them; 0: Postgres has accepted all rows. */
  wait(rows: number): void {
    this.#waiting = rows === 0 ? undefined : { rows, since: this.#waiting?.since ?? this.#now() }
  }

  lately(): DroppedLately[] {
    const now = this.#now()
    const lately = [...this.#lately.values()].filter(({ lastAt }) => now - lastAt < QUIET_MS)
    if (this.#waiting === undefined || now - this.#waiting.since < WAITING_MS) return lately
    return [...lately, { reason: 'waiting', rows: this.#waiting.rows, lastAt: now }]
  }
}
