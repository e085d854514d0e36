/** Every failure that a caller can get, in one table. To add a failure, add a line here. */
interface ErrorEntry {
  status: number
  /** Whether the same request may succeed later without a change. */
  retryable: boolean
  message: string
  /** One imperative sentence. Tokens such as `param=id` are added if they are known. */
  hint: string
}

const retryable = (status: number, message: string, hint: string): ErrorEntry => ({
  status,
  retryable: true,
  message,
  hint,
})

const final = (status: number, message: string, hint: string): ErrorEntry => ({
  status,
  retryable: false,
  message,
  hint,
})

export const ERRORS = {
  VALIDATION_ERROR: final(
    400,
    'The request is not valid.',
    'Fix the field named in the message and send the request again',
  ),
  INVALID_JSON: final(
    400,
    'The body is not valid JSON.',
    'Send a well-formed JSON object in which each member appears once',
  ),
  INVALID_ENCODING: final(
    400,
    'The request contains text that is not valid Unicode.',
    'Send UTF-8 without NUL or lone surrogates',
  ),
  INVALID_PARAMETER: final(400, 'A parameter is missing or invalid.', 'Correct the parameter'),
  EMAIL_IN_USE: final(
    400,
    'An account with this email already exists.',
    'Log in with POST /v1/auth/login or use another email',
  ),
  PROVIDER_KEY_REQUIRED: final(
    400,
    'This API needs a provider key of your own.',
    'Save a key with PUT /v1/provider-keys/{apiSlug}',
  ),
  PROVIDER_KEY_INVALID: final(
    400,
    'The upstream refused your provider key.',
    'Replace it with PUT /v1/provider-keys/{apiSlug}',
  ),
  UPSTREAM_REJECTED: final(400, 'The upstream API rejected these values.', 'Change the parameters'),
  AUTH_REQUIRED: final(401, 'A credential is required.', 'Send X-Api-Key or Authorization: Bearer'),
  INVALID_CREDENTIALS: final(401, 'Email or password is wrong.', 'Check both and log in again'),
  INVALID_API_KEY: final(401, 'The API key is not valid.', 'Create a key with POST /v1/keys and send it as X-Api-Key'),
  INVALID_TOKEN: final(401, 'The session token is not valid.', 'Log in again with POST /v1/auth/login'),
  TOKEN_EXPIRED: final(401, 'The session token has expired.', 'Log in again with POST /v1/auth/login'),
  PLAN_UPGRADE_REQUIRED: final(402, 'This API needs a higher plan.', 'Ask the operator to upgrade the plan'),
  FORBIDDEN: final(403, 'Your role does not permit this.', 'Ask the owner of the team'),
  KEY_API_FORBIDDEN: final(403, 'This credential may not call this API.', 'Use an API that the credential may call'),
  KEY_ADDRESS_FORBIDDEN: final(
    403,
    'This credential may not be used from this address.',
    'Send the request from an address that its owner allows, or have the owner allow this address',
  ),
  OWNER_IMMUTABLE: final(403, 'The owner of a team cannot be removed or demoted.', 'Choose another member'),
  NOT_FOUND: final(404, 'There is no such route.', 'See /docs for the routes'),
  API_NOT_FOUND: final(404, 'There is no API with this name.', 'Choose an api_name from GET /v1/catalog'),
  ENDPOINT_NOT_FOUND: final(404, 'This API has no such endpoint.', 'Choose an endpoint from GET /v1/catalog'),
  KEY_NOT_FOUND: final(404, 'There is no such API key.', 'List the keys with GET /v1/keys'),
  TEAM_NOT_FOUND: final(404, 'There is no such team.', 'List your teams with GET /v1/teams'),
  MEMBER_NOT_FOUND: final(404, 'The team has no such member.', 'List the members with GET /v1/teams/{id}'),
  USER_NOT_FOUND: final(404, 'No user has this email.', 'Ask the person to sign up first'),
  CONNECTION_NOT_FOUND: final(
    404,
    'There is no such connected application.',
    'List your connections with GET /v1/connections',
  ),
  CALL_NOT_FOUND: final(404, 'There is no such call.', 'Use the id of an asynchronous call of the last 15 minutes'),
  UPSTREAM_NOT_FOUND: final(
    404,
    'Not found at the source.',
    'Change the parameters, because the source has nothing under these values',
  ),
  METHOD_NOT_ALLOWED: final(405, 'This route does not allow this method.', 'Use a method that the Allow header lists'),
  REQUEST_TIMEOUT: retryable(408, 'The request took too long to arrive.', 'Send the whole request at once'),
  ALREADY_MEMBER: final(
    409,
    'This user is already a member.',
    'Change the role with PUT /v1/teams/{id}/members/{memberId}',
  ),
  CONNECTION_LIMIT_REACHED: final(
    409,
    'The account has reached its limit of connected applications (100).',
    'End a connection with DELETE /v1/connections/{id} first',
  ),
  TEAM_LIMIT_REACHED: final(
    409,
    'The account has reached its limit of teams (20).',
    'Delete a team with DELETE /v1/teams/{id} first',
  ),
  KEY_LIMIT_REACHED: final(409, 'Key limit reached (50).', 'Revoke a key with DELETE /v1/keys/{id} first'),
  KEY_ALREADY_ROTATED: final(
    409,
    'Another key has replaced this key.',
    'Rotate or change the key that replaced it, which GET /v1/keys names in replacedBy',
  ),
  TEAM_OWNER: final(
    409,
    'The account owns teams.',
    'Hand each team over with POST /v1/teams/{id}/transfer, or delete it with DELETE /v1/teams/{id}',
  ),
  CALL_CANCELLED: final(409, 'The call was cancelled.', 'Send the call again if you still need its result'),
  CALL_ENDED: final(409, 'The call had ended before it was cancelled.', 'Get its result with GET /v1/calls/{id}'),
  PAYLOAD_TOO_LARGE: final(413, 'The body is too large.', 'Send at most 16 KiB'),
  URI_TOO_LONG: final(414, 'The address is too long.', 'Send parameters in a POST body'),
  UNSUPPORTED_MEDIA_TYPE: final(
    415,
    'The body must be JSON.',
    'Send Content-Type: application/json without Content-Encoding',
  ),
  RATE_LIMIT_EXCEEDED: retryable(
    429,
    'Rate limit exceeded.',
    'Wait and send the call again, or ask the operator to upgrade the plan',
  ),
  MONTHLY_QUOTA_EXCEEDED: retryable(
    429,
    'The monthly quota is used up.',
    'Wait for the next month, or ask the operator to upgrade the plan',
  ),
  CONCURRENCY_LIMIT_EXCEEDED: retryable(
    429,
    'Too many of your calls are running at once.',
    'Send the call again after retry_after seconds, when one of your calls is expected to have ended',
  ),
  RESULT_STORAGE_FULL: retryable(
    429,
    'Your stored results use all the storage of your plan.',
    'Wait until earlier results have expired, or send the call without Prefer',
  ),
  LOGIN_THROTTLED: retryable(429, 'Too many log-in attempts.', 'Wait and log in again'),
  SIGNUP_THROTTLED: retryable(429, 'Too many sign-ups from this address.', 'Wait and sign up again'),
  REGISTRATION_THROTTLED: retryable(
    429,
    'Too many applications have been registered from this address.',
    'Wait and register again',
  ),
  HEADERS_TOO_LARGE: final(
    431,
    'The header fields are too large, or too many.',
    'Send at most 16 KiB of header fields, and fewer than 800 of them',
  ),
  INTERNAL_ERROR: retryable(
    500,
    'Something went wrong on our side.',
    'Retry, and report the X-Request-Id if it happens again',
  ),
  UPSTREAM_ERROR: retryable(502, 'The upstream API failed.', 'Retry later or use another API'),
  UPSTREAM_TIMEOUT: retryable(502, 'The upstream API did not answer in time.', 'Retry later'),
  OUTCOME_UNKNOWN: final(
    502,
    'The change may have happened: a request may have been sent, and no answer confirms the change or denies it.',
    'Check whether the change happened before you send the call again',
  ),
  UPSTREAM_INVALID_RESPONSE: retryable(
    502,
    'The upstream API sent an answer that the gateway cannot use.',
    'Retry later',
  ),
  UPSTREAM_TOO_LARGE: final(502, 'The answer of the upstream API is too large.', 'Request less data'),
  UPSTREAM_REDIRECT_BLOCKED: final(
    502,
    'The upstream API sent a redirect that the gateway does not follow.',
    'Report it to the operator',
  ),
  UPSTREAM_AUTH_FAILED: final(502, 'The upstream API refused the gateway.', 'Report it to the operator'),
  UPSTREAM_RATE_LIMITED: retryable(502, 'The upstream API is limiting our calls.', 'Wait and send the call again'),
  UPSTREAM_UNAVAILABLE: retryable(502, 'The upstream API is down.', 'Retry later'),
  UPSTREAM_CAP_EXHAUSTED: retryable(
    503,
    "The upstream's rate limit is used up, and this call cannot wait long enough for the next slot.",
    'Wait and send the call again',
  ),
  API_NOT_ENABLED: final(503, 'The operator has not enabled this API.', 'Ask the operator to enable it'),
  API_PAUSED: retryable(503, 'The operator has paused this API.', 'Wait until it is resumed, or use another API'),
  OVERLOADED: retryable(503, 'The gateway is overloaded.', 'Wait and send the call again'),
  DEADLINE_EXCEEDED: retryable(
    503,
    'The call could not be finished in time.',
    'Send the call again, with Prefer: respond-async if it may take long',
  ),
  DEPENDENCY_UNAVAILABLE: retryable(503, 'A part of the gateway is unavailable.', 'Retry in a few seconds'),
  DRAINING: retryable(503, 'This node is shutting down.', 'Send the request again'),
} satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof ERRORS

/** The message of a code with the cause in a few words: `The upstream API failed (HTTP 500).` */
export function withCause(code: ErrorCode, words: string | undefined): string {
  const { message } = ERRORS[code]
  return words === undefined ? message : `${message.slice(0, -1)} (${words}).`
}

export interface ErrorDetails {
  /** Replaces the table's public message. */
  message?: string | undefined
  /** Replaces the hint of the table, if the next action differs. */
  hint?: string | undefined
  /** Tokens for the hint: `{ param: 'id' }` adds `param=id`. */
  tokens?: Record<string, string | number>
  /** Milliseconds until a retry may succeed. Goes into `Retry-After` and the hint. */
  retryAfterMs?: number | undefined
  /** Whether the connection must be closed after the answer. */
  endsConnection?: boolean
  /** Methods for the `Allow` header of a 405. */
  allow?: string[]
  /** Only for the log. */
  cause?: unknown
}

/** An error without a stack, unless it is requested. A stack costs a seventh of a refusal. */
export class StacklessError extends Error {
  constructor(message: string, { cause, hasStack = false }: { cause?: unknown; hasStack?: boolean } = {}) {
    const { stackTraceLimit } = Error
    if (!hasStack) Error.stackTraceLimit = 0
    super(message, { cause })
    Error.stackTraceLimit = stackTraceLimit
  }
}

/**
 * A failure with a code of the table. Its message is public. Its `cause` says what happened inside,
 * and is only for the log.
 */
export class GatewayError extends StacklessError {
  readonly code: ErrorCode
  readonly details: ErrorDetails

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    // Only our own faults need a stack. For other failures code and cause are enough.
    super(details.message ?? ERRORS[code].message, { cause: details.cause, hasStack: ERRORS[code].status === 500 })
    this.name = 'GatewayError'
    this.code = code
    this.details = details
  }

  get status(): number {
    return ERRORS[this.code].status
  }
}

/** Retry-After if a dependency failed, milliseconds. */
const DEPENDENCY_RETRY_MS = 2_000

/**
 * A driver throws this if a dependency failed. Its message is for the log; callers get the message
 * of the code.
 */
export class DependencyError extends Error {
  readonly code: 'DEPENDENCY_UNAVAILABLE' | 'OVERLOADED'

  constructor(code: DependencyError['code'], cause: Error) {
    super(cause.message, { cause })
    this.name = 'DependencyError'
    this.code = code
  }
}

/**
 * Turns anything thrown into a GatewayError, once, at the edge. Unexpected errors reveal nothing to
 * the caller.
 */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown
  return thrown instanceof DependencyError
    ? new GatewayError(thrown.code, { retryAfterMs: DEPENDENCY_RETRY_MS, cause: thrown })
    : new GatewayError('INTERNAL_ERROR', { cause: thrown })
}

/** Whether an error says that a dependency is away. */
export function isDependencyAway(error: unknown): boolean {
  return (error instanceof GatewayError || error instanceof DependencyError) && error.code === 'DEPENDENCY_UNAVAILABLE'
}
