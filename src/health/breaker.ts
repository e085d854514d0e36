/** When an upstream is tried at all. */

/** Failures in a row that open the breaker. */
export const FAILURES_TO_OPEN = 5

/** Pause before the first trial, and the longest that doubling leads to. Milliseconds. */
export const TRIAL_MS_FIRST = 30_000
export const TRIAL_MS_MAX = 300_000

/** Good trials in a row that close the breaker. */
export const TRIALS_TO_CLOSE = 3

/** Good attempts in a row before Degraded becomes Healthy again: hysteresis, so that a flapping API does not blink. */
export const GOOD_TO_RECOVER = 3

/** Longest a trial may be under way before another may be made: its worker may have died. Milliseconds. */
export const TRIAL_LEASE_MS = 20_000
