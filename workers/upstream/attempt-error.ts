import type { ErrorCode } from '../../src/errors.ts'

export interface AttemptErrorDetails {
  isRetryable: boolean
  cause?: unknown
  retryAfterMs?: number | undefined
}

/** No usable answer. Whether to repeat it is a fact of its code. */
export class AttemptError extends Error {
  readonly code: ErrorCode
  readonly isRetryable: boolean
  /** Where the upstream says so. */
  readonly retryAfterMs: number | undefined

  constructor(code: ErrorCode, { isRetryable, cause, retryAfterMs }: AttemptErrorDetails) {
    super(code, { cause })
    this.name = 'AttemptError'
    this.code = code
    this.isRetryable = isRetryable
    this.retryAfterMs = retryAfterMs
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
