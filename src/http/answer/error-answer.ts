import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { type ErrorCode, GatewayError, toGatewayError } from '../../errors.ts'
import { STATUS_CODES } from '../../node-http.ts'
import { prefersType } from '../request/accept.ts'
import { callerSocket } from '../request/caller-socket.ts'
import { sentence, type Violation, violationPlace, violationWords } from '../request/violation-words.ts'
import { PROBLEM_TYPE, problemDetails } from './problem-details.ts'
import { publicError, retryAfterSeconds } from './public-error.ts'

const members = {
  code: Type.String({ description: 'Stable name of the failure' }),
  message: Type.String({ description: 'What went wrong, in one sentence' }),
  hint: Type.String({ description: 'The next action, with machine tokens such as retry_after=7 or param=id' }),
  docs: Type.String({ description: 'Address of the documentation of the code' }),
}

/** Error answers of all routes but the proxy routes. */
export const ErrorAnswer = Type.Object(
  { error: Type.String({ description: 'Reason phrase of the HTTP status' }), ...members },
  { $id: 'Error' },
)

/** Error answers of the proxy routes. */
export const CallErrorAnswer = Type.Object(
  {
    status: Type.Literal('error', { description: 'Always error' }),
    error: Type.Object(members, { description: 'What went wrong' }),
  },
  { $id: 'CallError' },
)

/** Whether a request is for a proxy route, whose errors have the envelope of the specification. */
export function isCallRoute(url: string): boolean {
  return /^\/v1\/call(?:[/?]|$)/.test(url)
}

/** The body of an error answer, in the form of its route. */
export function errorBody(error: GatewayError, baseUrl: string, isCall: boolean): object {
  const members = publicError(error, baseUrl)
  return isCall ? { status: 'error', error: members } : { error: STATUS_CODES[error.status] ?? 'Error', ...members }
}

/**
 * Answers a failure in JSON, or as problem details if the caller prefers them. Every error that is
 * thrown is answered with one of our codes.
 */
export function sendError(reply: FastifyReply, thrown: unknown, baseUrl: string): FastifyReply {
  const error = prepareError(reply, thrown)
  return writeFailure(reply, error, { baseUrl, isCall: isCallRoute(reply.request.url) })
}

/**
 * Writes the body of a failure in the form that the request prefers. Status and headers must be set
 * before.
 */
export function writeFailure(
  reply: FastifyReply,
  error: GatewayError,
  { baseUrl, isCall }: { baseUrl: string; isCall: boolean },
): FastifyReply {
  const { headers, id } = reply.request
  reply.header('cache-control', 'no-store')
  return prefersType(headers.accept, PROBLEM_TYPE)
    ? reply.type(PROBLEM_TYPE).send(JSON.stringify(problemDetails(error, baseUrl, id)))
    : reply.type('application/json; charset=utf-8').send(JSON.stringify(errorBody(error, baseUrl, isCall)))
}

/**
 * Sets the status and headers of the answer to a failure, and logs the failure unless the caller
 * caused it. Does not write the body.
 */
export function prepareError(reply: FastifyReply, thrown: unknown): GatewayError {
  const { request } = reply
  const error = fromFramework(thrown, request) ?? toGatewayError(thrown)
  // A refused call has its own log line, which names the reason.
  if (error.status === 500 || (error.status > 500 && !isCallRoute(request.url)))
    request.log[error.status === 500 ? 'error' : 'info'](
      { requestId: request.id, code: error.code, err: error.cause },
      'request failed',
    )
  const retryAfter = retryAfterSeconds(error)
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  if (error.details.allow) reply.header('allow', error.details.allow.join(', '))
  if (error.status === 401) reply.header('www-authenticate', challenge(error.code))
  // The connection must be closed: the client is still sending a body that we refuse to read, or it
  // is uncertain where its next request begins.
  if (error.status === 413 || error.status === 408 || error.details.endsConnection) reply.header('connection', 'close')
  // Fastify closes the connection after every refused body. If the body was read to its end, the
  // connection stays open, because the client may already have sent its next request, which would
  // be carried out without an answer.
  else if (request.raw.complete) reply.removeHeader('connection')
  reply.status(error.status)
  return error
}

/**
 * The challenge of a 401 (RFC 6750, 3): the scheme that the route needs, and what was wrong with
 * the token.
 */
function challenge(code: ErrorCode): string {
  return code === 'AUTH_REQUIRED' || code === 'INVALID_CREDENTIALS'
    ? 'Bearer realm="agent-api-gateway"'
    : 'Bearer realm="agent-api-gateway", error="invalid_token"'
}

const FRAMEWORK_CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'UNSUPPORTED_MEDIA_TYPE',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'INVALID_JSON',
  FST_ERR_CTP_INVALID_JSON_BODY: 'INVALID_JSON',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'INVALID_JSON',
  FST_ERR_MAX_PARAM_LENGTH: 'URI_TOO_LONG',
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
}

/** Hint for a missing body, or a body of a wrong type. */
const BODY_HINT = 'Send a JSON object as the body, with Content-Type: application/json'

/** Our error for a refusal by Fastify; undefined if Fastify did not throw it. */
function fromFramework(thrown: unknown, request: FastifyRequest): GatewayError | undefined {
  if (!(thrown instanceof Error)) return undefined
  const { code, statusCode, validation, validationContext } = thrown as FastifyError & { validationContext?: string }
  if (validation) return validationError(validation[0], validationContext)
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    const hint = `Send at most ${Math.floor((request.routeOptions.bodyLimit ?? 0) / 1_024)} KiB`
    return new GatewayError('PAYLOAD_TOO_LARGE', { hint, cause: thrown })
  }
  // If the caller left before its body had arrived, or before a stream that answers it began, this
  // is not a failure of the gateway, and nobody reads the answer.
  const isUploadBroken = code === 'ECONNRESET' && request.raw.destroyed && !request.raw.complete
  const isAnswerBroken = code === 'ERR_STREAM_PREMATURE_CLOSE' && callerSocket(request).destroyed
  if (isUploadBroken || isAnswerBroken) return new GatewayError('REQUEST_TIMEOUT', { cause: thrown })
  const known = typeof code === 'string' ? FRAMEWORK_CODES[code] : undefined
  if (known) return new GatewayError(known, { cause: thrown })
  // All other errors of Fastify with a 4xx status are the caller's, not failures of the gateway.
  const isClientError = (statusCode ?? 500) < 500 && typeof code === 'string' && code.startsWith('FST_')
  return isClientError ? new GatewayError('VALIDATION_ERROR', { cause: thrown }) : undefined
}

function validationError(violation: Violation = {}, context = 'body'): GatewayError {
  const name = violationPlace(violation)
  const subject = name === undefined ? `The ${context}` : `${context === 'body' ? 'Member' : 'Parameter'} ${name}`
  const isType = violation.keyword === 'type'
  // Values of a query are strings. If a value is sent twice, it becomes a list.
  const words = isType && context === 'querystring' ? 'must be given once' : violationWords(violation)
  return new GatewayError('VALIDATION_ERROR', {
    message: sentence(`${subject} ${words}`),
    tokens: name === undefined ? {} : { param: name },
    ...(isType && context === 'body' && violation.instancePath === '' ? { hint: BODY_HINT } : {}),
  })
}
