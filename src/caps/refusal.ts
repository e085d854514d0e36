import type { ErrorCode } from '../errors.ts'
import type { QueueRefusal } from './cap.ts'

/** Why no request is sent for a call: its cap's wait queue refused it, or the breaker is open (`down`). */
export type RefusalReason = QueueRefusal['refused'] | 'down'

const CODES: Record<RefusalReason, ErrorCode> = {
  cap: 'UPSTREAM_CAP_EXHAUSTED',
  share: 'UPSTREAM_CAP_EXHAUSTED',
  closed: 'UPSTREAM_RATE_LIMITED',
  overloaded: 'OVERLOADED',
  down: 'UPSTREAM_UNAVAILABLE',
}

/** A refusal as its caller is told. `retryAfterMs` is exact but for `share` (if others stop asking) and `overloaded`. */
export function refusalOf({ refused, retryAfterMs }: { refused: RefusalReason; retryAfterMs: number }): {
  code: ErrorCode
  retryAfterMs: number
  message?: string
} {
  const message = 'Your fair share of the upstream API is used up while others ask for it too.'
  return { code: CODES[refused], retryAfterMs, ...(refused === 'share' ? { message } : {}) }
}
