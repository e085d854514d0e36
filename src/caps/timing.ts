/**
 * How much longer than the upstream's window the window of a cap is, milliseconds. A permit is used within
 * PERMIT_AGE_MS_MAX of its grant; the rest is for the network. So what is exact at the grant is exact as the upstream
 * sees it.
 */
export const WINDOW_MARGIN_MS = 500

/** How long a permit may be used after its grant, milliseconds. */
export const PERMIT_AGE_MS_MAX = 250

/** How long a waiter counts after its worker last polled for it, milliseconds: a dead worker blocks nothing. */
export const WAITER_TTL_MS = 1_500

/**
 * How long a cap stays closed when Redis lost its memory, milliseconds, or its window where that is shorter. What was
 * sent before that is put back from Postgres.
 */
export const COLD_START_HOLD_MS = 60_000 + WINDOW_MARGIN_MS

/** How long after a loss the counts in Postgres are complete: workers write them down every second. Milliseconds. */
export const BACKFILL_AFTER_MS = 3_000
