export type ResponseClassCode =
  | 'UPSTREAM_NOT_FOUND'
  | 'UPSTREAM_REJECTED'
  | 'UPSTREAM_RATE_LIMITED'
  | 'UPSTREAM_AUTH_FAILED'
  | 'UPSTREAM_ERROR'
  | 'UPSTREAM_INVALID_RESPONSE'
  | 'UPSTREAM_REDIRECT_BLOCKED'

/** What an answer that is not data means. The public text is ours, never the upstream's. */
export class ResponseClass {
  readonly code: ResponseClassCode
  readonly message: string | undefined
  /** When the upstream says so: milliseconds until the next request may be sent. */
  readonly retryAfterMs: number | undefined

  constructor(code: ResponseClassCode, message?: string, retryAfterMs?: number) {
    this.code = code
    this.message = message
    this.retryAfterMs = retryAfterMs
  }
}

/** The upstream definitely has no such thing: an answer, not a failure. */
export const notFound = (message?: string): ResponseClass => new ResponseClass('UPSTREAM_NOT_FOUND', message)
/** The upstream refuses these values. */
export const rejected = (message?: string): ResponseClass => new ResponseClass('UPSTREAM_REJECTED', message)
/** We are over the upstream's limit; the next request may be sent after `retryAfterMs`. */
export const overLimit = (retryAfterMs?: number): ResponseClass =>
  new ResponseClass('UPSTREAM_RATE_LIMITED', undefined, retryAfterMs)
/** The upstream refuses the key, or calls without one. */
export const authFailed = (): ResponseClass => new ResponseClass('UPSTREAM_AUTH_FAILED')
/** The upstream says that it failed. */
export const failed = (): ResponseClass => new ResponseClass('UPSTREAM_ERROR')
/** The answer cannot be what it should be. */
export const invalid = (): ResponseClass => new ResponseClass('UPSTREAM_INVALID_RESPONSE')
