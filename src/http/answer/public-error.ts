import { ERRORS, type GatewayError } from '../../errors.ts'

/** The public members of a failure, all strings. */
export interface PublicError {
  code: string
  message: string
  hint: string
  docs: string
}

/** The public form of a failure. `baseUrl` is the service's public address. */
export function publicError(error: GatewayError, baseUrl: string): PublicError {
  const tokens = { ...error.details.tokens }
  const retryAfter = retryAfterSeconds(error)
  if (retryAfter !== undefined) tokens.retry_after = retryAfter
  const suffix = Object.entries(tokens).map(([name, value]) => ` ${name}=${value}`)
  return {
    code: error.code,
    message: error.message,
    hint: `${error.details.hint ?? ERRORS[error.code].hint}.${suffix.join('')}`,
    docs: `${baseUrl}/docs/errors#${error.code}`,
  }
}

/** Retry-After if an operator must change something first, milliseconds. */
const OPERATOR_MS = 3_600_000

/**
 * `Retry-After` in whole seconds, rounded up so that it is never too early (RFC 9110, 10.2.3).
 * Every 503 has this header; its value is an hour if only an operator can help.
 */
export function retryAfterSeconds(error: GatewayError): number | undefined {
  const { status, retryable } = ERRORS[error.code]
  const retryAfterMs = error.details.retryAfterMs ?? (status === 503 ? (retryable ? 1_000 : OPERATOR_MS) : undefined)
  return retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1_000))
}
