import { STATUS_CODES } from 'node:http'
import { ERRORS, type ErrorCode, GatewayError } from '../errors.ts'
import { CallErrorAnswer, ErrorAnswer, errorBody } from '../http/error-answer.ts'
import type { DocumentedRoute } from './route-list.ts'
import { type JsonSchema, type NamedSchemas, toDocumentSchema } from './schemas.ts'

/** What any request can run into, whatever its route. */
const EVERYWHERE: ErrorCode[] = ['REQUEST_TIMEOUT', 'URI_TOO_LONG', 'HEADERS_TOO_LARGE', 'INTERNAL_ERROR']
const WITH_STORES: ErrorCode[] = ['DEPENDENCY_UNAVAILABLE', 'DRAINING']
const WITH_BODY: ErrorCode[] = [
  'VALIDATION_ERROR',
  'INVALID_JSON',
  'INVALID_ENCODING',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
]
const WITH_INPUT: ErrorCode[] = ['VALIDATION_ERROR', 'INVALID_ENCODING']
const WITH_SESSION: ErrorCode[] = ['AUTH_REQUIRED', 'INVALID_TOKEN', 'TOKEN_EXPIRED']
const WITH_CREDENTIAL: ErrorCode[] = [...WITH_SESSION, 'INVALID_API_KEY']

/** Failures of a proxy call. What is not here belongs to accounts, keys and teams. */
const NOT_OF_CALLS: ErrorCode[] = [
  'EMAIL_IN_USE', 'INVALID_CREDENTIALS', 'FORBIDDEN', 'OWNER_IMMUTABLE', 'NOT_FOUND', 'KEY_NOT_FOUND', 'TEAM_NOT_FOUND',
  'MEMBER_NOT_FOUND', 'USER_NOT_FOUND', 'CALL_NOT_FOUND', 'CALL_ENDED', 'METHOD_NOT_ALLOWED', 'ALREADY_MEMBER', 'KEY_LIMIT_REACHED',
  'LOGIN_THROTTLED', 'SIGNUP_THROTTLED',
] // biome-ignore format: a list

/** Of calls and of accounts. */
const SHARED: ErrorCode[] = ['RATE_LIMIT_EXCEEDED', 'API_NOT_FOUND', 'PROVIDER_KEY_INVALID']

/** Whether a declared response is our error body: the codes say more of it than its schema. */
export function isErrorSchema(declared: unknown): boolean {
  return Object(declared).$id === 'Error'
}

export const CALL_CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => !NOT_OF_CALLS.includes(code))

/**
 * The codes that a route can answer: of its guard, its input, and those declared beside it. A status it declares
 * without naming codes may come with any code of accounts, keys and teams that has this status.
 */
export function codesOf(route: DocumentedRoute): ErrorCode[] {
  const codes = new Set<ErrorCode>(route.errors)
  const named = new Set(route.errors.map((code) => ERRORS[code].status))
  for (const code of [...NOT_OF_CALLS, ...SHARED]) {
    const { status } = ERRORS[code]
    if (isErrorSchema(route.responses[status]) && !named.has(status)) codes.add(code)
  }
  const add = (more: ErrorCode[]) => {
    for (const code of more) codes.add(code)
  }
  add(EVERYWHERE)
  if (route.url.startsWith('/v1/') || route.url.startsWith('/mcp')) add(WITH_STORES)
  if (route.method !== 'GET') add(WITH_BODY)
  else if (route.querystring || route.params) add(WITH_INPUT)
  if (route.guard === 'session') add(WITH_SESSION)
  if (route.guard === 'call') add(WITH_CREDENTIAL)
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => codes.has(code))
}

/** The error answers of these codes by status, each code with its example. */
export function errorResponses(codes: ErrorCode[], isCall: boolean, named: NamedSchemas): Record<string, JsonSchema> {
  const schema = toDocumentSchema(isCall ? CallErrorAnswer : ErrorAnswer, named)
  const responses: Record<string, JsonSchema> = {}
  for (const [status, group] of Map.groupBy(codes, (code) => ERRORS[code].status)) {
    responses[status] = {
      description: `${STATUS_CODES[status]}: ${group.join(', ')}`,
      headers: errorHeaders(status, isCall),
      content: {
        'application/json': {
          schema,
          examples: Object.fromEntries(
            group.map((code) => [code, { $ref: `#/components/examples/${exampleName(code, isCall)}` }]),
          ),
        },
      },
    }
  }
  return responses
}

/** The examples that the written paths and responses refer to. */
export function errorExamples(written: object, baseUrl: string): Record<string, JsonSchema> {
  const text = JSON.stringify(written)
  const examples: Record<string, JsonSchema> = {}
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    for (const isCall of [false, true]) {
      const name = exampleName(code, isCall)
      if (!text.includes(`"#/components/examples/${name}"`)) continue
      examples[name] = { summary: ERRORS[code].message, value: errorBody(new GatewayError(code), baseUrl, isCall) }
    }
  }
  return examples
}

const exampleName = (code: ErrorCode, isCall: boolean): string => (isCall ? `call.${code}` : code)

function errorHeaders(status: number, isCall: boolean): JsonSchema {
  const header = (name: string) => ({ $ref: `#/components/headers/${name}` })
  return {
    'X-Request-Id': header('RequestId'),
    ...(status === 401 ? { 'WWW-Authenticate': header('Challenge') } : {}),
    ...(status === 429 || status >= 502 ? { 'Retry-After': header('RetryAfter') } : {}),
    ...(isCall && status !== 401
      ? { RateLimit: header('RateLimit'), 'RateLimit-Policy': header('RateLimitPolicy') }
      : {}),
  }
}
