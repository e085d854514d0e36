export type ResponseClassCode =
  | 'UPSTREAM_NOT_FOUND'
  | 'UPSTREAM_REJECTED'
  | 'UPSTREAM_RATE_LIMITED'
  | 'UPSTREAM_AUTH_FAILED'
  | 'UPSTREAM_ERROR'
  | 'UPSTREAM_INVALID_RESPONSE'
  | 'UPSTREAM_REDIRECT_BLOCKED'

/**
 * The meaning of an answer that has no data. The text for callers is ours, never the upstream's.
 */
export class ResponseClass {
  readonly code: ResponseClassCode
  readonly message: string | undefined
  /** Milliseconds until the next request may be sent, if the upstream says so. */
  readonly retryAfterMs: number | undefined

  constructor(code: ResponseClassCode, message?: string, retryAfterMs?: number) {
    this.code = code
    this.message = message
    this.retryAfterMs = retryAfterMs
  }
}

/** The upstream says that the thing does not exist. This is an answer, not a failure. */
export const notFound = (message?: string): ResponseClass => new ResponseClass('UPSTREAM_NOT_FOUND', message)
/** The upstream refuses the values of the call. */
export const rejected = (message?: string): ResponseClass => new ResponseClass('UPSTREAM_REJECTED', message)
/** The gateway is over the upstream's limit. The next request may be sent after `retryAfterMs`. */
export const overLimit = (retryAfterMs?: number): ResponseClass =>
  new ResponseClass('UPSTREAM_RATE_LIMITED', undefined, retryAfterMs)
/** The upstream refuses the key, or refuses calls without a key. */
export const authFailed = (): ResponseClass => new ResponseClass('UPSTREAM_AUTH_FAILED')
/** The upstream says that it failed. */
export const failed = (): ResponseClass => new ResponseClass('UPSTREAM_ERROR')
/** The answer does not have the form that the upstream's answers have. */
export const invalid = (): ResponseClass => new ResponseClass('UPSTREAM_INVALID_RESPONSE')
