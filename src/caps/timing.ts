/**
 * Added to each window, because a request may reach the upstream this much later than its grant.
 * Milliseconds.
 */
export const WINDOW_MARGIN_MS = 500

/**
 * Age up to which a permit may be used. The rest of the margin is for the network. Milliseconds.
 */
export const PERMIT_AGE_MS_MAX = 250

/**
 * Longest round trip for which permits last long enough, milliseconds. If Redis is slower, API
 * nodes refuse calls.
 */
export const ROUND_TRIP_MS_MAX = 1_000

/**
 * After this time the leases of a killed or stalled worker end. Other workers have the jobs of that
 * worker by then. Milliseconds.
 */
export const LEASE_MS = 6_000

/**
 * How long a waiter counts after its worker last polled for it, milliseconds, so that a dead worker
 * blocks nothing.
 */
export const WAITER_TTL_MS = 1_500

/**
 * How long a cap stays closed after Redis lost its past, milliseconds; no longer than its window.
 */
export const COLD_START_HOLD_MS = 60_000 + WINDOW_MARGIN_MS

/**
 * Time between the end of the last attempt and the caller's deadline, reserved for the reply,
 * milliseconds.
 */
export const REPLY_MS = 200

/**
 * How long after a loss the counts in Postgres are complete, milliseconds. Workers write them every
 * second.
 */
export const BACKFILL_AFTER_MS = 3_000
