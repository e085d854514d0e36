/**
 * What the TypeScript client knows of answers: their data, what they say about themselves, and
 * failures. What is below the line is copied into the client, where `ErrorCode` and `Endpoints` are
 * generated.
 */
type ErrorCode = string
// biome-ignore lint/suspicious/noEmptyInterface: generated with a member for each endpoint
interface Endpoints {}
// ---
export interface GatewayOptions {
  /**
   * API key, agw_live_… or agw_test_…, the session token of a log-in, or the access token of an
   * application.
   */
  key: string
  /** Address of the gateway. */
  baseUrl?: string
  /** How often a call is retried whose failure may be temporary. Default: 2. */
  retriesMax?: number
  /**
   * Longest wait before a retry, milliseconds; a longer Retry-After is thrown at once. Default: 60
   * 000.
   */
  retryWaitMsMax?: number
  /**
   * Longest wait for one answer, milliseconds. Default: ten seconds longer than a call may take at
   * the gateway.
   */
  timeoutMs?: number
  /**
   * Called before each wait for a retry, with the error, the wait in milliseconds and the number of
   * earlier retries.
   */
  onRetry?: (error: GatewayError, waitMs: number, retries: number) => void
  /** Called with the metadata of each answer, even if the call failed. */
  onAnswer?: (meta: AnswerMeta) => void
  /** Sends the requests; Default: the global fetch. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export interface CallOptions {
  /** Ends the call and its retries. */
  signal?: AbortSignal
  /** Further request headers, such as X-Gateway-Scenario for a test key. */
  headers?: Record<string, string>
  /** POST sends the parameters as JSON. Default: GET. */
  method?: 'GET' | 'POST'
  /** The call changes something: it is not repeated if no answer says whether it happened. */
  once?: boolean
}

/** Metadata of an answer. */
export interface AnswerMeta {
  /** HTTP status. */
  status: number
  /** Names the request in the gateway's logs. */
  requestId: string | undefined
  /** Names the call. */
  callId: string | undefined
  /** Whether the data are a recorded example. */
  isTest: boolean
  /** Whether a stored answer was used (Cache-Status, RFC 9211). */
  cache: string | undefined
  /** What is left, as the RateLimit header says it. */
  rateLimit: string | undefined
  /** Where the time went (Server-Timing). */
  timing: string | undefined
  /** Every header. */
  headers: Headers
}

/** The data of an answer, with its metadata. */
export interface Answer<T> {
  data: T
  meta: AnswerMeta
}

/** A call of a batch. */
export interface BatchCall {
  api: string
  /** With or without a slash: `current`. */
  endpoint: string
  parameters?: object
  /** Your own name for the call; the result has it too. */
  ref?: string
}

/** How a call of a batch ended: with data or with an error. */
export interface BatchResult<T = unknown> {
  index: number
  ref?: string
  id?: string
  status: number
  data?: T
  error?: { code: string; message: string; hint: string; docs: string }
  retryAfter?: number
  cache?: 'hit' | 'stale' | 'miss'
}

export interface BatchAnswer {
  /** In the order of the calls. */
  results: BatchResult[]
  ok: number
  failed: number
  charged: number
  deduplicated: number
  mode: 'live' | 'test'
}

/** A call that runs while its caller does something else. */
export interface StartedCall<T> {
  id: string
  /**
   * Waits for the result, which is kept for 15 minutes.
   *
   * @throws GatewayError if the call failed or was cancelled
   */
  result(options?: { signal?: AbortSignal }): Promise<T>
  /** Cancels the call. A call that was not sent yet costs nothing. */
  cancel(): Promise<void>
}

export type KnownPath = keyof Endpoints & string
export type ParametersOf<P> = P extends keyof Endpoints
  ? Endpoints[P] extends { parameters: infer G }
    ? G
    : object
  : object
export type DataOf<P> = P extends keyof Endpoints ? (Endpoints[P] extends { data: infer D } ? D : unknown) : unknown

/** A call that was answered with a failure. */
export class GatewayError extends Error {
  /** What went wrong, for programs. */
  readonly code: ErrorCode
  /** HTTP status; 0 if no answer arrived, and 401 for a key that cannot be sent. */
  readonly status: number
  /** The next action, with machine tokens such as param=id. */
  readonly hint: string
  /** Address of the code's documentation. */
  readonly docs: string
  /** Seconds until it may be tried again, if that is known. */
  readonly retryAfter: number | undefined
  /** Names the request in the gateway's logs. */
  readonly requestId: string | undefined
  /** Names the call in the log of your calls. */
  readonly callId: string | undefined

  constructor(status: number, headers: Headers, error: Failure) {
    super(`${error.code}: ${error.message} ${error.hint}`)
    this.name = 'GatewayError'
    this.code = error.code as ErrorCode
    this.status = status
    this.hint = error.hint
    this.docs = error.docs
    this.retryAfter = secondsOf(headers.get('retry-after'))
    this.requestId = headers.get('x-request-id') ?? undefined
    this.callId = headers.get('x-call-id') ?? undefined
  }
}

export interface Failure {
  code: string
  message: string
  hint: string
  docs: string
}

export interface AnswerBody extends Partial<Failure> {
  status?: string
  data?: unknown
  error?: Partial<Failure> | string
}

export interface Received {
  response: Response
  answer: AnswerBody | null | undefined
}

/**
 * The failure in an answer, whose members stand under error in answers to calls; undefined if the
 * gateway sent none.
 */
export function failureOf(answer: AnswerBody | null | undefined): Failure | undefined {
  for (const given of [answer?.error, answer]) {
    if (typeof given !== 'object' || given === null || typeof given.code !== 'string') continue
    const { code, message = '', hint = '', docs = '' } = given
    return { code, message, hint, docs }
  }
  return undefined
}

/** @throws GatewayError for an answer without data */
export function dataOf({ response, answer }: Received): unknown {
  if (response.ok && answer?.status === 'success' && 'data' in answer) return answer.data
  throw failed(response, answer)
}

export function failed({ status, headers }: Response, answer: AnswerBody | null | undefined): GatewayError {
  const message = `HTTP ${status} without an answer of the gateway.`
  return new GatewayError(status, headers, failureOf(answer) ?? { code: 'INVALID_ANSWER', message, hint: '', docs: '' })
}

export function metaOf({ status, headers }: Response): AnswerMeta {
  const text = (name: string): string | undefined => headers.get(name) ?? undefined
  return {
    status,
    requestId: text('x-request-id'),
    callId: text('x-call-id'),
    isTest: headers.get('x-gateway-mode') === 'test',
    cache: text('cache-status'),
    rateLimit: text('ratelimit'),
    timing: text('server-timing'),
    headers,
  }
}

/**
 * The header for a key. Programs without types pass a variable that is not set; files end with a
 * line break.
 */
export function credentialOf(given: unknown): Record<string, string> {
  const key = typeof given === 'string' ? given.trim() : ''
  if (key === '') throw keyError('AUTH_REQUIRED', 'There is no API key.', 'Set AGW_API_KEY, or pass key.')
  // The key itself is in no message.
  if (!/^[!-~]+$/.test(key))
    throw keyError(
      'INVALID_API_KEY',
      'The API key has characters that no key has.',
      'Pass the whole key as it was shown.',
    )
  return TOKEN.test(key) ? { authorization: `Bearer ${key}` } : { 'x-api-key': key }
}

/** An access token has 43 characters, a session token three parts. */
const TOKEN = /^(?!agw_)([\w-]{43}|[\w-]+\.[\w-]+\.[\w-]+)$/

function keyError(code: string, message: string, hint: string): GatewayError {
  return new GatewayError(401, new Headers(), { code, message, hint, docs: '' })
}

/** Seconds of a Retry-After, which is a number or a date; undefined for anything else. */
export function secondsOf(after: string | null): number | undefined {
  const text = (after ?? '').trim()
  if (/^(\d+|\d*\.\d+)$/.test(text)) return Number(text)
  const at = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(/GMT$/.test(text) ? text : `${text} GMT`) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - Date.now()) / 1_000)
}

export function parse(text: string): AnswerBody | null | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
