import type { ErrorCode } from '../errors.ts'
import type { QueueRefusal } from './cap.ts'

const CODES: Record<QueueRefusal['refused'], ErrorCode> = {
  cap: 'UPSTREAM_CAP_EXHAUSTED',
  share: 'UPSTREAM_CAP_EXHAUSTED',
  closed: 'UPSTREAM_RATE_LIMITED',
  overloaded: 'OVERLOADED',
}

export function refusalOf({ refused, retryAfterMs }: QueueRefusal): {
  code: ErrorCode
  retryAfterMs: number
  message?: string
} {
  const message = 'Your fair share of the upstream API is used up while others ask for it too.'
  return { code: CODES[refused], retryAfterMs, ...(refused === 'share' ? { message } : {}) }
}
