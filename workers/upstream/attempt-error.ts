import type { ErrorCode } from '../../src/errors.ts'

export interface AttemptErrorDetails {
  isRetryable: boolean
  cause?: unknown
  retryAfterMs?: number | undefined
  message?: string
  /** Refused unsent, as admission would have refused it: it costs nothing. */
  isRefused?: boolean
}

/** An attempt without a usable answer. */
export class AttemptError extends Error {
  readonly code: ErrorCode
  readonly isRetryable: boolean
  readonly retryAfterMs: number | undefined
  readonly publicMessage: string | undefined
  readonly isRefused: boolean
  /** Ended because the call had no time left, before the attempt's own time limit. */
  isCutShort = false

  constructor(code: ErrorCode, { isRetryable, cause, retryAfterMs, message, isRefused = false }: AttemptErrorDetails) {
    super(code, { cause })
    this.name = 'AttemptError'
    this.code = code
    this.isRetryable = isRetryable
    this.retryAfterMs = retryAfterMs
    this.publicMessage = message
    this.isRefused = isRefused
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

/** The breaker is open: nothing was sent. */
export class BreakerOpenError extends AttemptError {
  constructor(waitMs: number) {
    super('UPSTREAM_UNAVAILABLE', { isRetryable: false, retryAfterMs: waitMs })
  }
}
