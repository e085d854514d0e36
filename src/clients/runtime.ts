/**
 * The part of the TypeScript client that is the same for every catalog; what is below the line is
 * copied into it.
 */
declare const BASE_URL: string
declare const RETRYABLE: ReadonlySet<string>
type ErrorCode = string
// ---
export interface GatewayOptions {
  /**
   * API key, agw_live_… or agw_test_…, the session token of a log-in, or the access token of an
   * application.
   */
  key: string
  /** Address of the gateway. */
  baseUrl?: string
  /** Retries of a call that failed for a while. Default: 2. */
  retriesMax?: number
  /**
   * Longest wait before a retry, milliseconds; a longer Retry-After is thrown at once. Default: 60
   * 000.
   */
  retryWaitMsMax?: number
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
  /** The call changes something: it is not made again when no answer says what came of it. */
  once?: boolean
}

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

  constructor(status: number, headers: Headers, error: Failure) {
    super(`${error.code}: ${error.message} ${error.hint}`)
    this.name = 'GatewayError'
    this.code = error.code as ErrorCode
    this.status = status
    this.hint = error.hint
    this.docs = error.docs
    this.retryAfter = secondsOf(headers.get('retry-after'))
    this.requestId = headers.get('x-request-id') ?? undefined
  }
}

interface Failure {
  code: string
  message: string
  hint: string
  docs: string
}

interface Answer extends Partial<Failure> {
  status?: string
  data?: unknown
  error?: Partial<Failure> | string
}

/**
 * The failure in an answer, whose members stand under error in answers to calls; undefined if the
 * gateway sent none.
 */
function failureOf(answer: Answer | null | undefined): Failure | undefined {
  for (const given of [answer?.error, answer]) {
    if (typeof given !== 'object' || given === null || typeof given.code !== 'string') continue
    const { code, message = '', hint = '', docs = '' } = given
    return { code, message, hint, docs }
  }
  return undefined
}

/** Sends calls and follows what their answers say of retries. */
export class Transport {
  readonly #options: GatewayOptions
  readonly #credential: Record<string, string>

  /** @throws GatewayError AUTH_REQUIRED or INVALID_API_KEY for a key that no header can hold */
  constructor(options: GatewayOptions) {
    this.#credential = credentialOf(options?.key)
    this.#options = options
  }

  /**
   * Calls any endpoint, even if this file does not know it, and returns the data of its answer.
   *
   * @param path names the API and its endpoint: `weather/current`
   * @throws GatewayError when the call failed, after the retries that its Retry-After allows
   */
  async call<T = unknown>(path: string, parameters: object = {}, options: CallOptions = {}): Promise<T> {
    const { retriesMax = 2, retryWaitMsMax = 60_000 } = this.#options
    for (let retries = 0; ; retries += 1) {
      try {
        return (await this.#send(path, parameters, options)) as T
      } catch (error) {
        if (!(error instanceof GatewayError) || retries >= retriesMax) throw error
        if (!(options.once ? RETRYABLE.has(error.code) : isPassing(error))) throw error
        // Without a Retry-After: half a second, then twice as long each time, spread so that
        // callers do not come together.
        const waitMs =
          error.retryAfter === undefined ? 500 * 2 ** retries * (0.5 + Math.random()) : error.retryAfter * 1_000
        if (waitMs > retryWaitMsMax) throw error
        await pause(waitMs, options.signal)
      }
    }
  }

  async #send(path: string, parameters: object, options: CallOptions): Promise<unknown> {
    const { signal, headers, method = 'GET' } = options
    const isPost = method === 'POST'
    const { baseUrl = BASE_URL, fetch: send = fetch } = this.#options
    const query = new URLSearchParams()
    for (const [name, value] of isPost ? [] : Object.entries(parameters)) {
      for (const item of [value].flat()) if (item !== undefined && item !== null) query.append(name, String(item))
    }
    const names = path.replace(/^\/+/, '').split(/\/+/).map(encodeURIComponent).join('/')
    const response = await orNoAnswer(
      signal,
      send(`${baseUrl.replace(/\/+$/, '')}/v1/call/${names}${query.size === 0 ? '' : `?${query}`}`, {
        ...(isPost ? { method, body: JSON.stringify(parameters) } : {}),
        headers: {
          ...headers,
          ...this.#credential,
          accept: 'application/json',
          ...(isPost ? { 'content-type': 'application/json' } : {}),
        },
        // A redirect is an answer: the key never goes to another address.
        redirect: 'manual',
        ...(signal === undefined ? {} : { signal }),
      }),
    )
    const answer = parse(await orNoAnswer(signal, response.text()))
    if (response.ok && answer?.status === 'success' && 'data' in answer) return answer.data
    const unreadable = { code: 'INVALID_ANSWER', message: `HTTP ${response.status} without an answer of the gateway.` }
    throw new GatewayError(
      response.status,
      response.headers,
      failureOf(answer) ?? { ...unreadable, hint: '', docs: '' },
    )
  }
}

/**
 * The header for a key. Programs without types pass a variable that is not set; files end with a
 * line break.
 */
function credentialOf(given: unknown): Record<string, string> {
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

/** Statuses of proxies and balancers that pass by themselves; 0 is no answer. */
const PASSING: ReadonlySet<number> = new Set([0, 408, 425, 429, 500, 502, 503, 504])

/**
 * Whether the same call may succeed: our codes say so, and of an answer of somebody else its status
 * does.
 */
function isPassing({ code, status }: GatewayError): boolean {
  return RETRYABLE.has(code) || ((code === 'INVALID_ANSWER' || code === 'NO_ANSWER') && PASSING.has(status))
}

/**
 * A connection that fails, or breaks while the answer comes, is a failure that passes; an abort
 * stays what it is.
 */
async function orNoAnswer<T>(signal: AbortSignal | undefined, exchange: Promise<T>): Promise<T> {
  try {
    return await exchange
  } catch (cause) {
    if (signal?.aborted) throw cause
    const words = { code: 'NO_ANSWER', message: `No answer arrived: ${cause}.`, hint: '', docs: '' }
    const error = new GatewayError(0, new Headers(), words)
    error.cause = cause
    throw error
  }
}

/** Seconds of a Retry-After, which is a number or a date; undefined for anything else. */
function secondsOf(after: string | null): number | undefined {
  const text = (after ?? '').trim()
  if (/^(\d+|\d*\.\d+)$/.test(text)) return Number(text)
  const at = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(/GMT$/.test(text) ? text : `${text} GMT`) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - Date.now()) / 1_000)
}

function parse(text: string): Answer | null | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}
