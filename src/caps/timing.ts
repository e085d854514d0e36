/**
 * Added to each window, because a request may reach the upstream so much later than its grant.
 * Milliseconds.
 */
export const WINDOW_MARGIN_MS = 500

/**
 * Age up to which a permit lets a request be sent; what is left of the margin is for the network.
 * Milliseconds.
 */
export const PERMIT_AGE_MS_MAX = 250

/**
 * Longest round trip for which permits are made to last, milliseconds: if Redis is slower, API
 * nodes refuse calls.
 */
export const ROUND_TRIP_MS_MAX = 1_000

/** After this, leases of a killed or stalled worker, which has lost its jobs, end. Milliseconds. */
export const LEASE_MS = 6_000

/**
 * How long a waiter counts after its worker last polled for it, milliseconds: a dead worker blocks
 * nothing.
 */
export const WAITER_TTL_MS = 1_500

/**
 * How long a cap stays closed after Redis lost its past, milliseconds; no longer than its window.
 */
export const COLD_START_HOLD_MS = 60_000 + WINDOW_MARGIN_MS

/**
 * Time for the reply between the end of the last attempt and the caller's deadline, milliseconds.
 */
export const REPLY_MS = 200

/**
 * How long after a loss the counts in Postgres are complete: workers write them down every second.
 * Milliseconds.
 */
export const BACKFILL_AFTER_MS = 3_000
