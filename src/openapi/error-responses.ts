import { ERRORS, type ErrorCode, GatewayError } from '../errors.ts'
import { CallErrorAnswer, ErrorAnswer, errorBody } from '../http/answer/error-answer.ts'
import { STATUS_CODES } from '../node-http.ts'
import type { DocumentedRoute } from './route-list.ts'
import { type JsonSchema, type NamedSchemas, nameSchema, toDocumentSchema } from './schemas.ts'

/** Refusals that do not depend on the route. They are described once, as `default`. */
const TRANSPORT_CODES: ErrorCode[] = [
  'METHOD_NOT_ALLOWED',
  'REQUEST_TIMEOUT',
  'PAYLOAD_TOO_LARGE',
  'URI_TOO_LONG',
  'UNSUPPORTED_MEDIA_TYPE',
  'HEADERS_TOO_LARGE',
]
const TRANSPORT_STATUSES = new Set<number>(TRANSPORT_CODES.map((code) => ERRORS[code].status))

/** Further failures of any request. */
const EVERYWHERE: ErrorCode[] = ['INTERNAL_ERROR', 'RATE_LIMIT_EXCEEDED']
const WITH_STORES: ErrorCode[] = ['DEPENDENCY_UNAVAILABLE', 'DRAINING']
const WITH_BODY: ErrorCode[] = ['VALIDATION_ERROR', 'INVALID_JSON', 'INVALID_ENCODING']
const WITH_INPUT: ErrorCode[] = ['VALIDATION_ERROR', 'INVALID_ENCODING']
const WITH_SESSION: ErrorCode[] = ['AUTH_REQUIRED', 'INVALID_TOKEN', 'TOKEN_EXPIRED']
const WITH_CREDENTIAL: ErrorCode[] = [...WITH_SESSION, 'INVALID_API_KEY']

/** Codes that no proxy call returns, because they belong to accounts, keys and teams. */
const NOT_OF_CALLS: ErrorCode[] = [
  'EMAIL_IN_USE', 'INVALID_CREDENTIALS', 'OWNER_IMMUTABLE', 'NOT_FOUND', 'KEY_NOT_FOUND', 'TEAM_NOT_FOUND',
  'MEMBER_NOT_FOUND', 'USER_NOT_FOUND', 'CALL_NOT_FOUND', 'CONNECTION_NOT_FOUND', 'CONNECTION_LIMIT_REACHED', 'REGISTRATION_THROTTLED', 'CALL_ENDED', 'ALREADY_MEMBER', 'KEY_ALREADY_ROTATED', 'TEAM_OWNER', 'KEY_LIMIT_REACHED', 'TEAM_LIMIT_REACHED',
  'LOGIN_THROTTLED', 'SIGNUP_THROTTLED',
] // biome-ignore format: a list

const ALL_CODES = Object.keys(ERRORS) as ErrorCode[]

export const CALL_CODES = ALL_CODES.filter((code) => !NOT_OF_CALLS.includes(code) && !TRANSPORT_CODES.includes(code))

/** The codes that a route can return: from its guard, its input, and its own declaration. */
export function codesOf(route: DocumentedRoute): ErrorCode[] {
  const codes = new Set<ErrorCode>([...route.errors, ...EVERYWHERE])
  const add = (more: ErrorCode[]) => {
    for (const code of more) codes.add(code)
  }
  if (route.url.startsWith('/v1/') || route.url.startsWith('/mcp')) add(WITH_STORES)
  if (route.method !== 'GET') add(WITH_BODY)
  else if (route.querystring) add(WITH_INPUT)
  if (route.guard === 'session') add(WITH_SESSION)
  if (route.guard === 'call') add([...WITH_CREDENTIAL, 'KEY_ADDRESS_FORBIDDEN', 'INVALID_PARAMETER'])
  return ALL_CODES.filter((code) => codes.has(code))
}

/**
 * The error answers for these codes, by status, with an example for each code. Refusals that do not
 * depend on the route become `default`.
 */
export function errorResponses(codes: ErrorCode[], isCall: boolean, named: NamedSchemas): Record<string, JsonSchema> {
  const responses: Record<string, JsonSchema> = {}
  for (const [status, group] of Map.groupBy(codes, (code) => ERRORS[code].status)) {
    if (TRANSPORT_STATUSES.has(status)) continue
    responses[status] = {
      description: `${STATUS_CODES[status]}: ${group.join(', ')}`,
      headers: errorHeaders(status, isCall),
      content: {
        'application/json': { schema: errorSchema(group, isCall, named), examples: exampleReferences(group, isCall) },
      },
    }
  }
  responses.default = { $ref: `#/components/responses/${isCall ? 'CallRefused' : 'Refused'}` }
  return responses
}

/** The `default` answers, for refusals that do not depend on the route. */
export function refusedResponses(named: NamedSchemas): Record<string, JsonSchema> {
  const refused = (isCall: boolean): JsonSchema => ({
    description: `The HTTP request itself was refused: ${TRANSPORT_CODES.join(', ')}`,
    headers: { 'X-Request-Id': headerReference('RequestId') },
    content: {
      'application/json': {
        schema: nameSchema(isCall ? 'CallError' : 'Error', errorSchema(ALL_CODES, isCall, named), named),
        examples: exampleReferences(TRANSPORT_CODES, isCall),
      },
    },
  })
  return { Refused: refused(false), CallRefused: refused(true) }
}

/**
 * The error body with an enum of these codes, so that the types of clients name the possible codes.
 */
function errorSchema(codes: ErrorCode[], isCall: boolean, named: NamedSchemas): JsonSchema {
  const schema = isCall ? CallErrorAnswer.properties.error : ErrorAnswer
  const { $id: _, ...written } = JSON.parse(JSON.stringify(schema))
  written.properties.code = { ...written.properties.code, enum: codes }
  const body = toDocumentSchema(written, named)
  if (!isCall) return body
  return {
    type: 'object',
    required: ['status', 'error'],
    properties: { status: CallErrorAnswer.properties.status, error: body },
  }
}

const exampleReferences = (codes: ErrorCode[], isCall: boolean): JsonSchema =>
  Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${exampleName(code, isCall)}` }]))

/** The error examples to which the paths and responses refer. */
export function errorExamples(written: object, baseUrl: string): Record<string, JsonSchema> {
  const references = JSON.stringify(written).matchAll(/"#\/components\/examples\/([^"]+)"/g)
  const named = new Set([...references].map(([, name]) => name))
  const examples: Record<string, JsonSchema> = {}
  for (const code of ALL_CODES) {
    for (const isCall of [false, true]) {
      const name = exampleName(code, isCall)
      if (!named.has(name)) continue
      examples[name] = { summary: ERRORS[code].message, value: errorBody(new GatewayError(code), baseUrl, isCall) }
    }
  }
  return examples
}

const exampleName = (code: ErrorCode, isCall: boolean): string => (isCall ? `call.${code}` : code)

/** A reference to a header of `components.headers`. */
export const headerReference = (name: string): JsonSchema => ({ $ref: `#/components/headers/${name}` })

/** The headers with the account's remaining allowance, on every answer to a known caller. */
export function limitHeaders(): JsonSchema {
  return {
    RateLimit: headerReference('RateLimit'),
    'RateLimit-Policy': headerReference('RateLimitPolicy'),
    'X-RateLimit-Limit': headerReference('LimitPerMinute'),
    'X-RateLimit-Remaining': headerReference('RemainingThisMinute'),
    'X-RateLimit-Reset': headerReference('MinuteReset'),
  }
}

function errorHeaders(status: number, isCall: boolean): JsonSchema {
  return {
    'X-Request-Id': headerReference('RequestId'),
    ...(status === 401 ? { 'WWW-Authenticate': headerReference('Challenge') } : {}),
    ...(status === 429 || status >= 502 ? { 'Retry-After': headerReference('RetryAfter') } : {}),
    ...(isCall && status !== 401 ? limitHeaders() : {}),
  }
}
