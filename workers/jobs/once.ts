import type { ErrorCode } from '../../src/errors.ts'
import { StatusError } from '../upstream/attempt-error.ts'
import { isFailure, type Outcome } from '../upstream/outcome.ts'

/** Failures that the upstream itself stated, in an answer below 500: nothing was changed. */
const STATED: ReadonlySet<ErrorCode> = new Set([
  'UPSTREAM_NOT_FOUND',
  'UPSTREAM_REJECTED',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_AUTH_FAILED',
  'UPSTREAM_REDIRECT_BLOCKED',
  'PROVIDER_KEY_INVALID',
  // Nobody waits for its outcome.
  'CALL_CANCELLED',
])

/**
 * The outcome of a request that was written and is never repeated. "Never sent" and "sent, and the
 * answer was lost" must not look alike: callers repeat the former.
 */
export function outcomeOfOnce(outcome: Outcome): Outcome {
  if (!isFailure(outcome) || STATED.has(outcome.code)) return outcome
  const { cause } = outcome
  if (cause instanceof StatusError && cause.status < 500) return outcome
  return { code: 'OUTCOME_UNKNOWN', cause: cause ?? new Error(outcome.code) }
}
