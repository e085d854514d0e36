/**
 * How the TypeScript client reads answers: data, metadata and failures. Everything below the line
 * `// ---` is copied into the client, where `ErrorCode` and `Endpoints` are generated.
 */
type ErrorCode = string
// biome-ignore lint/suspicious/noEmptyInterface: generated with a member for each endpoint
interface Endpoints {}
// ---
export interface GatewayOptions {
  /**
   * An API key (agw_live_… or agw_test_…), the session token of a log-in, or the access token of an
   * application.
   */
  key: string
  /** Address of the gateway. */
  baseUrl?: string
  /** How often a call is retried if its failure may be temporary. Default: 2. */
  retriesMax?: number
  /**
   * Longest wait before a retry, milliseconds. If Retry-After is longer, the error is thrown at
   * once. Default: 60 000.
   */
  retryWaitMsMax?: number
  /**
   * Longest wait for one answer, milliseconds. Default: ten seconds more than a call may take at
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
  /** Sends the requests. Default: the global fetch. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export interface CallOptions {
  /** Aborts the call and its retries. */
  signal?: AbortSignal
  /** Further request headers, such as X-Gateway-Scenario for a test key. */
  headers?: Record<string, string>
  /** POST sends the parameters as JSON. Default: POST if this file knows that it must, or GET. */
  method?: 'GET' | 'POST'
  /**
   * Set if the call changes something. It is then not repeated if no answer says whether it was
   * carried out. Default: what this file knows of the endpoint.
   */
  once?: boolean
}

/** Metadata of an answer. */
export interface AnswerMeta {
  /** HTTP status. */
  status: number
  /** Id of the request in the gateway's logs. */
  requestId: string | undefined
  /** Id of the call. */
  callId: string | undefined
  /** Whether the data are a recorded example. */
  isTest: boolean
  /** Whether a stored answer was used (Cache-Status, RFC 9211). */
  cache: string | undefined
  /** The remaining allowance, as the RateLimit header gives it. */
  rateLimit: string | undefined
  /** Where the time of the call went (Server-Timing). */
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
  /** Your own reference for the call, which the result repeats. */
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
  /** Results in the order of the calls. */
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
  /** Cancels the call. If the call was not sent to the source yet, it costs nothing. */
  cancel(): Promise<void>
}

export type KnownPath = keyof Endpoints & string
export type ParametersOf<P> = P extends keyof Endpoints
  ? Endpoints[P] extends { parameters: infer G }
    ? G
    : object
  : object
export type DataOf<P> = P extends keyof Endpoints ? (Endpoints[P] extends { data: infer D } ? D : unknown) : unknown

/** The call failed. */
export class GatewayError extends Error {
  /** The error code, for programs. */
  readonly code: ErrorCode
  /** HTTP status; 0 if no answer arrived, and 401 for a key that cannot be sent. */
  readonly status: number
  /** What to do next, with machine tokens such as param=id. */
  readonly hint: string
  /** Address of the documentation of the code. */
  readonly docs: string
  /** Seconds until a retry may succeed, if known. */
  readonly retryAfter: number | undefined
  /** Id of the request in the gateway's logs. */
  readonly requestId: string | undefined
  /** Id of the call in the log of your calls. */
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
 * The failure in an answer; undefined if the gateway sent none. Answers to calls have its members
 * under `error`.
 */
export function failureOf(answer: AnswerBody | null | undefined): Failure | undefined {
  for (const given of [answer?.error, answer]) {
    if (typeof given !== 'object' || given === null || typeof given.code !== 'string') continue
    const { code, message = '', hint = '', docs = '' } = given
    return { code, message, hint, docs }
  }
  return undefined
}

/** @throws GatewayError if the answer has no data */
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
 * The header for a key. The key may be undefined, because programs without types may pass an unset
 * variable, and may end with a line break, because it was read from a file.
 */
export function credentialOf(given: unknown): Record<string, string> {
  const key = typeof given === 'string' ? given.trim() : ''
  if (key === '') throw keyError('AUTH_REQUIRED', 'The API key is missing.', 'Set AGW_API_KEY, or pass key.')
  // Messages never contain the key.
  if (!/^[!-~]+$/.test(key))
    throw keyError(
      'INVALID_API_KEY',
      'The API key contains characters that are not allowed in a key.',
      'Pass the whole key, exactly as the gateway showed it.',
    )
  return TOKEN.test(key) ? { authorization: `Bearer ${key}` } : { 'x-api-key': key }
}

/** An access token has 43 characters. A session token has three parts with dots between them. */
const TOKEN = /^(?!agw_)([\w-]{43}|[\w-]+\.[\w-]+\.[\w-]+)$/

function keyError(code: string, message: string, hint: string): GatewayError {
  return new GatewayError(401, new Headers(), { code, message, hint, docs: '' })
}

/**
 * The seconds of a Retry-After header, which is a number or a date; undefined for anything else.
 */
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
