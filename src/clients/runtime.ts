/** The part of the TypeScript client that is the same for every catalog; what is below the line is copied into it. */
declare const BASE_URL: string
declare const RETRYABLE: ReadonlySet<string>
type ErrorCode = string
// ---
export interface GatewayOptions {
  /** API key, agw_live_… or agw_test_…, or the session token of a log-in. */
  key: string
  /** Address of the gateway. */
  baseUrl?: string
  /** Retries of a call that failed for a while. Default: 2. */
  retriesMax?: number
  /** Longest wait before a retry, milliseconds; a longer Retry-After is thrown at once. Default: 60 000. */
  retryWaitMsMax?: number
  /** Sends the requests; Default: the global fetch. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export interface CallOptions {
  /** Ends the call and its retries. */
  signal?: AbortSignal
  /** Further request headers, such as X-Gateway-Scenario for a test key. */
  headers?: Record<string, string>
}

/** A call that was answered with a failure. */
export class GatewayError extends Error {
  /** What went wrong, for programs. */
  readonly code: ErrorCode
  /** HTTP status. */
  readonly status: number
  /** The next action, with machine tokens such as param=id. */
  readonly hint: string
  /** Address of the code's documentation. */
  readonly docs: string
  /** Seconds until it may be tried again, where that is known. */
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
    const seconds = Number(headers.get('retry-after') ?? Number.NaN)
    this.retryAfter = Number.isFinite(seconds) ? seconds : undefined
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

/** The failure in an answer, whose members stand under error in answers to calls; undefined where the gateway sent none. */
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

  constructor(options: GatewayOptions) {
    this.#options = options
  }

  /**
   * Calls any endpoint, also one that this file does not know, and gives the data of its answer.
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
        if (!(error instanceof GatewayError) || !RETRYABLE.has(error.code) || retries >= retriesMax) throw error
        // Without a Retry-After: half a second, then twice as long each time, spread so that callers do not come together.
        const waitMs =
          error.retryAfter === undefined ? 500 * 2 ** retries * (0.5 + Math.random()) : error.retryAfter * 1_000
        if (waitMs > retryWaitMsMax) throw error
        await pause(waitMs, options.signal)
      }
    }
  }

  async #send(path: string, parameters: object, { signal, headers }: CallOptions): Promise<unknown> {
    const { key, baseUrl = BASE_URL, fetch: send = fetch } = this.#options
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined && value !== null) query.set(name, String(value))
    }
    const names = path.split('/').map(encodeURIComponent).join('/')
    const response = await send(
      `${baseUrl.replace(/\/+$/, '')}/v1/call/${names}${query.size === 0 ? '' : `?${query}`}`,
      {
        headers: { ...headers, authorization: `Bearer ${key}`, accept: 'application/json' },
        ...(signal === undefined ? {} : { signal }),
      },
    )
    // A body that breaks off or is aborted throws as the request itself does.
    const answer = parse(await response.text())
    if (response.ok && answer?.status === 'success') return answer.data
    const unreadable = { code: 'INVALID_ANSWER', message: `HTTP ${response.status} without an answer of the gateway.` }
    throw new GatewayError(
      response.status,
      response.headers,
      failureOf(answer) ?? { ...unreadable, hint: '', docs: '' },
    )
  }
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
