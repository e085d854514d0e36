import { type ErrorCode, StacklessError, withCause } from '../errors.ts'
import type { QueueRefusal } from './replies.ts'

/**
 * Why no request is sent for a call: the wait queue of its cap refused it, or the breaker is open
 * (`down`).
 */
export type RefusalReason = QueueRefusal['reason'] | 'down'

/** Why the upstream is down, in the words of its last failure. For the log of calls. */
export class UpstreamDownError extends StacklessError {
  override readonly name = 'UpstreamDownError'
}

export interface Refusal {
  reason: RefusalReason
  retryAfterMs: number
  lastFailure?: { words: string } | undefined
}

const CODES: Record<RefusalReason, ErrorCode> = {
  cap: 'UPSTREAM_CAP_EXHAUSTED',
  share: 'UPSTREAM_CAP_EXHAUSTED',
  closed: 'UPSTREAM_RATE_LIMITED',
  overloaded: 'OVERLOADED',
  down: 'UPSTREAM_UNAVAILABLE',
}

/**
 * A refusal in the form for its caller. `retryAfterMs` is exact, with three exceptions: for `share`
 * it changes if others stop calling, for `overloaded` it is an estimate, and so it is in a queue
 * longer than `PLANNED_LENGTH_MAX`. `lastFailure` is why the upstream is down.
 */
export function refusalOf({ reason, retryAfterMs, lastFailure }: Refusal): {
  code: ErrorCode
  retryAfterMs: number
  message?: string
  cause?: UpstreamDownError
} {
  const code = CODES[reason]
  if (reason === 'down') {
    const words = lastFailure?.words
    const cause = words === undefined ? {} : { cause: new UpstreamDownError(words) }
    return { code, retryAfterMs, message: withCause(code, words), ...cause }
  }
  if (reason === 'share') return { code, retryAfterMs, message: SHARE_USED }
  return reason === 'overloaded' ? { code, retryAfterMs, message: slowWords(retryAfterMs) } : { code, retryAfterMs }
}

/** The message if one source is slow. The gateway itself is not overloaded. */
function slowWords(retryAfterMs: number): string {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000))
  return `This API answers slowly; its connections are all in use. Try again in ${seconds} s.`
}

const SHARE_USED = 'You have used your fair share of this API for now. Other accounts are waiting for it.'

/** The words for a call whose provider key the upstream has not accepted yet. */
export const UNPROVEN_KEYS_USED =
  'Your provider key is not verified yet, and the quota for unverified keys is used up for now.'

/**
 * Extra text for a call with an unverified provider key. Such calls count against a cap of their
 * own, which the catalog does not show.
 */
export function refusalWithUnprovenKey({ reason }: { reason: RefusalReason }): { message?: string; hint?: string } {
  if (reason !== 'cap' && reason !== 'share') return {}
  return {
    message: UNPROVEN_KEYS_USED,
    hint: 'Check the key in the portal, on /account/provider-keys, or wait for Retry-After',
  }
}
