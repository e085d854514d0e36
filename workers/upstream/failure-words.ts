import { ERRORS } from '../../src/errors.ts'
import { isTlsCode } from '../../src/net/tls-code.ts'
import { StatusError } from '../errors/attempt-error.ts'

const CAUSE_LENGTH_MAX = 120

export interface Seen {
  /** Undefined if no answer came. */
  status?: number | undefined
  error?: unknown
  ms: number
}

/** No answer came at all: codes of the system, of TLS or of the HTTP client. */
const NETWORK: Record<string, string> = {
  ENOTFOUND: 'DNS: no such host',
  EAI_AGAIN: 'DNS: no answer',
  ECONNREFUSED: 'connection refused',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  ENETDOWN: 'the network is down',
  ETIMEDOUT: 'no connection in time',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
}

const OTHERS: Record<string, string> = {
  ECONNRESET: 'connection reset',
  UND_ERR_SOCKET: 'connection closed',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'answer not finished in time',
  UND_ERR_HEADERS_OVERFLOW: 'headers of the answer too large',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'answer shorter or longer than its Content-Length',
  HTTPParserError: 'answer is not valid HTTP',
  BLOCKED_ADDRESS: 'the address is not allowed',
  BODY_TOO_LARGE: 'answer too large',
  BODY_UNREADABLE: 'answer cannot be read',
}

/** Holds nothing of the request. `isNetwork`: the upstream was not reached. */
export function describeFailure(code: string, { status, error, ms }: Seen): { words: string; isNetwork: boolean } {
  if (status !== undefined)
    return { words: `HTTP ${status} in ${took(ms)}${meaningOf(code, status)}`, isNetwork: false }
  const unreached = unreachedWords(error)
  if (unreached !== undefined) return { words: unreached, isNetwork: true }
  const other = OTHERS[systemCode(error)]
  if (other !== undefined) return { words: `${other} after ${took(ms)}`, isNetwork: false }
  return {
    words: code === 'UPSTREAM_TIMEOUT' ? `no answer in ${took(ms)}` : `no answer after ${took(ms)}`,
    isNetwork: false,
  }
}

/** Why the upstream was not reached; undefined if it was. */
function unreachedWords(error: unknown): string | undefined {
  const system = systemCode(error)
  return isTlsCode(system) ? `TLS: ${system}` : NETWORK[system]
}

/**
 * What is behind a status that counts as a failure of the upstream, if the status alone does not
 * say it.
 */
function meaningOf(code: string, status: number): string {
  if (code === 'UPSTREAM_INVALID_RESPONSE') return ', not in the expected form'
  if (code === 'UPSTREAM_REDIRECT_BLOCKED') return ', a redirect that is not followed'
  if (code === 'UPSTREAM_RATE_LIMITED' || code === 'UPSTREAM_AUTH_FAILED') return ''
  if (status === 404 || status === 410) return ', as if the route had moved'
  return status >= 400 && status < 500 ? ', a refusal of what is checked and correct' : ''
}

/**
 * Errors of the HTTP client and of several addresses wrap it. The client's parser gives its errors
 * no code, or a code for each rule of HTTP.
 */
function systemCode(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; depth += 1) {
    if (at.name === 'HTTPParserError') return at.name
    const code: unknown = Reflect.get(at, 'code')
    if (typeof code === 'string' && !Object.hasOwn(ERRORS, code)) return code
    at = at.cause ?? (at instanceof AggregateError ? at.errors[0] : undefined)
  }
  return ''
}

function took(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}

/** Why a call failed, in a few words for the log of calls. */
export function causeWords(code: string, cause: unknown): string {
  const known = knownWords(code, cause) ?? systemCode(cause)
  if (known !== '') return known
  return cause instanceof Error && cause.message !== '' ? cause.message.slice(0, CAUSE_LENGTH_MAX) : code
}

/**
 * Why a call failed, for its caller, if the code does not say it. Only words of this file, because
 * what others threw may name an address.
 */
export function publicCauseWords(code: string, cause: unknown): string | undefined {
  const isTold = code === 'UPSTREAM_ERROR' || cause instanceof StatusError
  return isTold ? knownWords(code, cause) : unreachedWords(cause)
}

function knownWords(code: string, cause: unknown): string | undefined {
  if (cause instanceof StatusError)
    return `HTTP ${cause.status}${code === 'UPSTREAM_ERROR' ? meaningOf(code, cause.status) : ''}`
  return unreachedWords(cause) ?? OTHERS[systemCode(cause)]
}
