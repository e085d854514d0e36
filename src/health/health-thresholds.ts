/**
 * When an upstream is tried at all. The breaker opens on failures in a row, and only if the
 * requests were plain: a probe's, or of as many callers without undeclared parameters. What a
 * caller adds or chooses may be why a request fails, so each caller has one vote, and failures of
 * fewer callers lead to a probe, which decides.
 */

/**
 * How long a failure of a caller is its vote, and keeps the half-open slot from it. Milliseconds.
 */
export const VOTE_MS = 120_000

/** Callers whose failures are kept, the latest of each. */
export const VOTERS_MAX = 32

/** So many callers' failures within `VOTE_MS` make an API of a low score Down without a probe. */
export const VOTES_TO_BE_DOWN = 5

/** Failures in a row that open the breaker of an upstream which answered everything before them. */
export const FAILURES_TO_OPEN = 5

/**
 * An upstream that fails part of the time has failures in a row by chance. So many are needed that
 * chance would bring them once in 1 / this many attempts: 14 in a row if every second attempt
 * failed before.
 */
export const CHANCE_TO_OPEN = 1e-4

/** However often it failed before, so many in a row open it. */
export const FAILURES_TO_OPEN_MAX = 30

/**
 * Least time since the last good attempt before the breaker opens, milliseconds: a restart is over
 * by then.
 */
export const QUIET_MS_TO_OPEN = 1_000

/** Least time between two probes that failures in a row need to decide, milliseconds. */
export const CONFIRM_EVERY_MS = 5_000

/**
 * Least time between two probes that say whether a low score is more than one account's doing,
 * milliseconds.
 */
export const CONFIRM_SCORE_EVERY_MS = 60_000

/**
 * Pause of an open breaker before its first half-open attempt, and the longest that doubling leads
 * to. Milliseconds.
 */
export const HALF_OPEN_PAUSE_MS_MIN = 30_000
export const HALF_OPEN_PAUSE_MS_MAX = 300_000

/**
 * `Retry-After` of a call that the breaker refuses while a half-open attempt is under way,
 * milliseconds. Most attempts end sooner.
 */
export const HALF_OPEN_WAIT_MS = 1_000

/** Answers in a row that lack a member until a probe decides whether that is an alarm. */
export const LACKING_TO_PROBE = 5

/**
 * How long a member that answers sometimes lack raises no alarm after the last of these,
 * milliseconds.
 */
export const ORDINARY_MS = 7 * 86_400_000

/** So many members of an endpoint are named. */
export const LACKING_NAMED_MAX = 5

/** Half-open attempts that must succeed before the breaker closes. */
export const SUCCESSES_TO_CLOSE = 3

/**
 * Good attempts in a row before a status gets better: hysteresis, so that a flapping API does not
 * blink.
 */
export const GOOD_TO_RECOVER = 3

/**
 * Longest a half-open attempt may take before another may be made: its worker may have died.
 * Milliseconds.
 */
export const HALF_OPEN_LEASE_MS = 30_000

/**
 * An attempt that has no answer after this long counts as a failure in a row before its time is
 * over, so that an upstream which hangs is noticed before all its places are taken; or after so
 * many times its p95, if that is longer. Milliseconds.
 */
export const HANGING_MS = 2_500

/** The same for an attempt whose caller left, however little patience it had. Milliseconds. */
export const LEFT_MS = 1_000

/** How many times the p95 an attempt may take before it counts as hanging. */
export const HANGING_P95_TIMES = 3

/**
 * An upstream in trouble is probed again when nothing was sent to it for this long, milliseconds.
 */
export const RECHECK_MS = 45_000

/**
 * Pause before an upstream in trouble is probed again, milliseconds. It doubles with the time of
 * the trouble if the upstream wants few probes (`isRare`): six probes in the first half hour, of 60
 * requests that such a cap allows an hour.
 */
export function recheckPauseMs({ isRare, troubledForMs }: { isRare: boolean; troubledForMs: number }): number {
  return isRare ? Math.max(RECHECK_MS, troubledForMs) : RECHECK_MS
}
