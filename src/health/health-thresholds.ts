/**
 * Constants that decide when an upstream is tried at all. The breaker opens after failures in a
 * row, but only if the requests were plain: probes, or requests of enough callers without
 * undeclared parameters. What a caller adds or chooses may be the reason why a request fails. So
 * each caller has one vote, and failures of fewer callers lead to a probe, which decides.
 */

/**
 * How long the failure of a caller counts as its vote, and keeps the half-open slot from it.
 * Milliseconds.
 */
export const VOTE_MS = 120_000

/** Most callers whose latest failures are kept. */
export const VOTERS_MAX = 32

/**
 * Failures of this number of callers within `VOTE_MS` make an API with a low score Down without a
 * probe.
 */
export const VOTES_TO_BE_DOWN = 5

/** Failures in a row that open the breaker of an upstream that answered everything before. */
export const FAILURES_TO_OPEN = 5

/**
 * If an upstream fails part of the time, some failures in a row are chance. The breaker needs so
 * many in a row that chance would bring them in only 1 of 10 000 attempts. For example, if every
 * second attempt failed before, it needs 14 in a row.
 */
export const CHANCE_TO_OPEN = 1e-4

/**
 * This number of failures in a row always opens the breaker, however often the upstream failed
 * before.
 */
export const FAILURES_TO_OPEN_MAX = 30

/**
 * Least time since the last good attempt before the breaker opens, milliseconds. A restart of the
 * upstream takes less.
 */
export const QUIET_MS_TO_OPEN = 1_000

/** Least time between two probes that decide about failures in a row, milliseconds. */
export const CONFIRM_EVERY_MS = 5_000

/**
 * Least time between two probes that decide whether a low score is due to one account alone,
 * milliseconds.
 */
export const CONFIRM_SCORE_EVERY_MS = 60_000

/**
 * Pause of an open breaker before its first half-open attempt, and the longest pause after
 * doubling. Milliseconds.
 */
export const HALF_OPEN_PAUSE_MS_MIN = 30_000
export const HALF_OPEN_PAUSE_MS_MAX = 300_000

/**
 * `Retry-After` for calls that an open breaker refuses while a half-open attempt is running,
 * milliseconds. Most attempts end sooner.
 */
export const HALF_OPEN_WAIT_MS = 1_000

/** Answers in a row that lack a member before a probe decides whether to raise an alarm. */
export const LACKING_TO_PROBE = 5

/**
 * If answers sometimes lack a member, it raises no alarm for this time after the last such answer,
 * milliseconds.
 */
export const ORDINARY_MS = 7 * 86_400_000

/** Most missing members of an endpoint that are named. */
export const LACKING_NAMED_MAX = 5

/** Half-open attempts that must succeed before the breaker closes. */
export const SUCCESSES_TO_CLOSE = 3

/**
 * Good attempts in a row before a status improves, so that the status of a flapping API does not
 * flicker.
 */
export const GOOD_TO_RECOVER = 3

/**
 * Longest time of a half-open attempt before another is allowed, because its worker may have died.
 * Milliseconds.
 */
export const HALF_OPEN_LEASE_MS = 30_000

/**
 * If an attempt has no answer after this time, it counts as a failure in a row before it ends, so
 * that a hanging upstream is noticed before all its connections are in use. If `HANGING_P95_TIMES`
 * times the p95 is longer, that time is used. Milliseconds.
 */
export const HANGING_MS = 2_500

/** The same time for an attempt whose caller left early. Milliseconds. */
export const LEFT_MS = 1_000

/** An attempt counts as hanging only after this multiple of the p95. */
export const HANGING_P95_TIMES = 3

/** If nothing was sent to an upstream in trouble for so long, it is probed again, milliseconds. */
export const RECHECK_MS = 45_000

/**
 * Pause before an upstream in trouble is probed again, milliseconds. If the upstream should get few
 * probes (`isRare`), the pause doubles as the trouble lasts: six probes in the first half hour, for
 * a cap of 60 requests an hour.
 */
export function recheckPauseMs({ isRare, troubledForMs }: { isRare: boolean; troubledForMs: number }): number {
  return isRare ? Math.max(RECHECK_MS, troubledForMs) : RECHECK_MS
}
