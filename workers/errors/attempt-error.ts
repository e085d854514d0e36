import { type Refusal, refusalOf } from '../../src/caps/refusal.ts'
import type { ErrorCode } from '../../src/errors.ts'
import type { Reach } from '../../src/queue/verdict.ts'

export interface AttemptErrorDetails {
  isRetryable: boolean
  cause?: unknown
  retryAfterMs?: number | undefined
  message?: string
  /** Default: `unsent`, because no permit or no connection came. */
  reach?: Reach
}

/** An attempt without a usable answer. */
export class AttemptError extends Error {
  readonly code: ErrorCode
  readonly isRetryable: boolean
  readonly retryAfterMs: number | undefined
  readonly publicMessage: string | undefined
  readonly reach: Reach
  /** Whether it ended because the call had no time left, before the attempt's own time limit. */
  isCutShort = false

  constructor(code: ErrorCode, details: AttemptErrorDetails) {
    const { isRetryable, cause, retryAfterMs, message, reach = 'unsent' } = details
    super(code, { cause })
    this.name = 'AttemptError'
    this.code = code
    this.isRetryable = isRetryable
    this.retryAfterMs = retryAfterMs
    this.publicMessage = message
    this.reach = reach
  }
}

export class StatusError extends Error {
  readonly status: number

  constructor(status: number) {
    super(`status ${status}`)
    this.name = 'StatusError'
    this.status = status
  }
}

/**
 * No request is sent, for a reason for which admission would refuse a new call: the breaker is
 * open, or a permit would come too late. A call that never had a place costs nothing (`refused`).
 */
export function refusedAttempt(refusal: Refusal, reach: 'unsent' | 'refused' = 'unsent'): AttemptError {
  const { code, ...details } = refusalOf(refusal)
  return new AttemptError(code, { isRetryable: false, reach, ...details })
}

/**
 * An attempt for which it is certain that nothing was sent, so that neither the cap nor the caller
 * pays for it.
 */
export class UnsentError extends Error {}

/** The permit was too old when the connection was ready. */
export class StalePermitError extends UnsentError {}

/** The call ended before its connection was ready. */
export class EndedUnsentError extends UnsentError {}

/**
 * How far an attempt that ended with this error got. If the error is neither an AttemptError nor an
 * UnsentError, the call ended after the first byte was written.
 */
export function reachOfFailed(error: unknown): Reach {
  if (error instanceof AttemptError) return error.reach
  return error instanceof UnsentError ? 'unsent' : 'sent'
}
