import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import { prefersType } from '../http/request/accept.ts'
import { InexactNumber, readJsonBody, spelledNumber } from '../http/request/json-body.ts'
import { isWellFormed } from '../http/request/well-formed.ts'
import type { Principal } from './authenticate.ts'
import type { GivenParameter } from './parameters.ts'
import { invalidParameter } from './undeclared-parameters.ts'

/** How a call is written in its HTTP request: path, query, body and headers. */

/** A text that needs no decoding, neither in a path nor in a form. */
const LITERAL = /^[\w.~,:/=-]*$/

export function decodeSegment(segment: string): string {
  if (LITERAL.test(segment)) return segment
  try {
    const decoded = decodeURIComponent(segment)
    if (isWellFormed(decoded)) return decoded
  } catch {
    // It is refused below, like a text that cannot be a name.
  }
  throw new GatewayError('INVALID_ENCODING')
}

const SCENARIO = /^(upstream-500|timeout|rate-limited|invalid|slow-\d{1,5})$/

/**
 * Checks the mode, because a misspelt mode must not count as live: a live call is charged.
 *
 * @throws GatewayError INVALID_PARAMETER for a mode that does not exist
 */
export function checkMode({ headers }: Pick<FastifyRequest, 'headers'>): void {
  const { 'x-gateway-mode': mode = 'live' } = headers
  if (mode !== 'live' && mode !== 'test') throw invalidHeader('X-Gateway-Mode', 'test or live')
}

/**
 * The scenario of a test call.
 *
 * @throws GatewayError INVALID_PARAMETER for a wrong scenario, or a mode that does not exist
 */
export function readScenario(
  request: Pick<FastifyRequest, 'headers'>,
  principal: Pick<Principal, 'mode'>,
): string | undefined {
  checkMode(request)
  const { 'x-gateway-scenario': scenario } = request.headers
  if (scenario === undefined || principal.mode !== 'test') return undefined
  if (typeof scenario === 'string' && SCENARIO.test(scenario)) return scenario
  throw invalidHeader('X-Gateway-Scenario', 'upstream-500, timeout, rate-limited, invalid or slow-<ms>')
}

function invalidHeader(header: string, values: string): GatewayError {
  return new GatewayError('INVALID_PARAMETER', { message: `${header} must be ${values}.`, tokens: { header } })
}

const UPSTREAM_TYPE = /vnd\.upstream\+json/i

/** @throws GatewayError INVALID_PARAMETER if X-Gateway-Response has a value other than `raw` */
export function wantsRaw({ headers }: FastifyRequest): boolean {
  const form = headers['x-gateway-response']
  if (form !== undefined && form !== 'raw') throw invalidHeader('X-Gateway-Response', 'raw')
  if (form === 'raw') return true
  // Few callers name the type, and ranking the whole header takes longer than this check.
  return UPSTREAM_TYPE.test(headers.accept ?? '') && prefersType(headers.accept, 'application/vnd.upstream+json')
}

/**
 * The query's pairs in order, decoded once as a form (`+` is a blank).
 * @throws GatewayError INVALID_ENCODING
 */
export function queryParameters(query: string): GivenParameter[] {
  const given: GivenParameter[] = []
  for (const part of query.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = equals < 0 ? part : part.slice(0, equals)
    const value = equals < 0 ? '' : part.slice(equals + 1)
    given.push(LITERAL.test(part) ? { name, value } : { name: formDecoded(name), value: formDecoded(value) })
  }
  return given
}

/**
 * The members of a body. A null parameter counts as absent. If JavaScript would write a number
 * differently from its sender, such as `1.10`, the number is read as text, as in a query.
 *
 * @throws GatewayError VALIDATION_ERROR
 */
export function bodyParameters(body: unknown): GivenParameter[] {
  if (body === undefined) return []
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new GatewayError('VALIDATION_ERROR', { message: 'The body must be a JSON object of parameters.' })
  }
  return Object.entries(body).flatMap(([name, value]: [string, unknown]) =>
    value === null ? [] : [{ name, value: spelledNumber(body, name) ?? value }],
  )
}

function formDecoded(text: string): string {
  let decoded: string
  try {
    decoded = decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw new GatewayError('INVALID_ENCODING', { cause })
  }
  if (!isWellFormed(decoded)) throw new GatewayError('INVALID_ENCODING')
  return decoded
}

/** The body of a call arrives as bytes, so that it is parsed after other checks. */
export function readBody({ headers, body }: FastifyRequest): unknown {
  if (!Buffer.isBuffer(body)) return body
  try {
    return body.length === 0 ? undefined : readJsonBody(headers, body)
  } catch (error) {
    // The members of a call's body are its parameters.
    throw error instanceof InexactNumber ? invalidParameter(error.member, error.reason) : error
  }
}

export interface Preference {
  /**
   * Milliseconds after which a call is answered with 202, or after which the calls of a batch end.
   * Undefined: wait for the result.
   */
  waitMs: number | undefined
  /** The value of `Preference-Applied`. */
  applied: string | undefined
}

/** A longer number is not a valid wait. */
const WAIT_DIGITS_MAX = 9

/**
 * Reads `Prefer` (RFC 7240): `respond-async` means 202 at once, `wait=5` after 5 seconds. Other
 * preferences are ignored. `waitMsMax` limits the wait.
 */
export function readPreference(headers: IncomingHttpHeaders, waitMsMax: number): Preference {
  if (headers.prefer === undefined) return NONE
  const preferences = String(headers.prefer)
    .toLowerCase()
    .split(/[,;]/)
    .map((part) => part.trim())
  for (const preference of preferences) {
    const [, seconds] = /^wait\s*=\s*"?(\d+)"?$/.exec(preference) ?? []
    if (seconds !== undefined && seconds.length <= WAIT_DIGITS_MAX) {
      const waitMs = Math.min(Number(seconds) * 1_000, waitMsMax)
      return { waitMs, applied: `wait=${Math.floor(waitMs / 1_000)}` }
    }
  }
  if (preferences.includes('respond-async')) return { waitMs: 0, applied: 'respond-async' }
  return NONE
}

const NONE: Preference = { waitMs: undefined, applied: undefined }

/**
 * `wait=5` bounds the calls. `respond-async` is ignored, because nobody can fetch the answer later.
 */
export function readBatchPreference(headers: IncomingHttpHeaders, waitMsMax: number): Preference {
  const preference = readPreference(headers, waitMsMax)
  return preference.waitMs ? preference : NONE
}
