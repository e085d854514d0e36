import type { ErrorCode } from '../../src/errors.ts'

/** An exchange that came to no usable answer. Whether to repeat it is a fact of its code. */
export class AttemptError extends Error {
  readonly code: ErrorCode
  readonly isRetryable: boolean
  /** When the upstream says so: milliseconds until it may be asked again. */
  readonly retryAfterMs: number | undefined

  constructor(code: ErrorCode, isRetryable: boolean, cause: unknown, retryAfterMs?: number) {
    super(code, { cause })
    this.name = 'AttemptError'
    this.code = code
    this.isRetryable = isRetryable
    this.retryAfterMs = retryAfterMs
  }
}
