/**
 * How the TypeScript client sends calls, for any catalog. Everything below the line `// ---` is
 * copied into the client.
 */
import {
  type Answer,
  type BatchAnswer,
  type BatchCall,
  type CallOptions,
  credentialOf,
  type DataOf,
  dataOf,
  failed,
  GatewayError,
  type GatewayOptions,
  type KnownPath,
  metaOf,
  type ParametersOf,
  parse,
  type Received,
  type StartedCall,
  secondsOf,
} from './runtime-answers.ts'

declare const BASE_URL: string
declare const POSTED: ReadonlyMap<string, boolean>
declare const RETRYABLE: ReadonlySet<string>
declare const TIMEOUT_MS: number
// ---
/** One request and its retry rule. */
interface Exchange {
  url: string
  method?: 'GET' | 'POST' | 'DELETE'
  body?: string
  /** Whether the request may be sent twice without harm. */
  isSafe: boolean
  headers?: Record<string, string> | undefined
  signal?: AbortSignal | undefined
}

/** Sends calls, and retries them as their answers say. */
export class Transport {
  readonly #options: GatewayOptions
  readonly #credential: Record<string, string>
  readonly #baseUrl: string

  /**
   * @throws GatewayError AUTH_REQUIRED or INVALID_API_KEY if there is no key, or no header can hold
   *   it
   */
  constructor(options: GatewayOptions) {
    this.#credential = credentialOf(options?.key)
    this.#options = options
    this.#baseUrl = (options.baseUrl ?? BASE_URL).replace(/\/+$/, '')
  }

  /**
   * Calls any endpoint by its path, even an endpoint without a method in this file, and returns the
   * data.
   *
   * @param path the API and its endpoint: `weather/current`
   * @throws GatewayError if the call failed, after the retries that its Retry-After allows
   */
  async call<T = unknown>(path: string, parameters: object = {}, options: CallOptions = {}): Promise<T> {
    return (await this.#data<T>(this.#callOf({ path, parameters, options }))).data
  }

  /** Calls an endpoint like its method, and returns the data with metadata such as the ids. */
  async answer<P extends KnownPath | (string & {})>(
    path: P,
    parameters?: ParametersOf<P>,
    options: CallOptions = {},
  ): Promise<Answer<DataOf<P>>> {
    return await this.#data<DataOf<P>>(this.#callOf({ path, parameters, options }))
  }

  /**
   * Starts a call that may wait longer than a connection should stay open. The start is retried
   * only if it was refused or never sent.
   */
  async start<P extends KnownPath | (string & {})>(
    path: P,
    parameters?: ParametersOf<P>,
    options: CallOptions = {},
  ): Promise<StartedCall<DataOf<P>>> {
    const headers = { ...options.headers, prefer: 'respond-async' }
    const exchange = this.#callOf({ path, parameters, options: { ...options, headers, once: true } })
    const { response, answer } = await this.#exchange(exchange)
    const id = Object(answer).id
    if (response.status !== 202 || typeof id !== 'string') throw failed(response, answer)
    const url = `${this.#baseUrl}/v1/calls/${encodeURIComponent(id)}`
    return {
      id,
      result: ({ signal } = {}) => this.#result(url, signal),
      cancel: async () => {
        const end = await this.#exchange({ url, method: 'DELETE', isSafe: true })
        if (!end.response.ok) throw failed(end.response, end.answer)
      },
    }
  }

  /**
   * Makes up to 50 calls at once. Each call can fail by itself, so check the error of each result.
   * The batch is retried only if it was refused or never sent.
   */
  async batch(
    calls: readonly BatchCall[],
    { take = 'all', ...options }: { take?: 'all' | 'fit'; signal?: AbortSignal; headers?: Record<string, string> } = {},
  ): Promise<BatchAnswer> {
    const body = jsonOf({
      calls: calls.map((call) => ({ ...call, endpoint: call.endpoint.replace(/^\/*/, '/') })),
      take,
    })
    const exchange = { ...options, url: `${this.#baseUrl}/v1/batch`, method: 'POST' as const, body, isSafe: false }
    const { response, answer } = await this.#exchange(exchange)
    if (!response.ok || !Array.isArray(Object(answer).results)) throw failed(response, answer)
    return answer as unknown as BatchAnswer
  }

  /** The request of a call. A GET has its parameters in the query, a POST in the body. */
  #callOf({
    path,
    parameters = {},
    options,
  }: {
    path: string
    parameters?: object | undefined
    options: CallOptions
  }): Exchange {
    const names = path.replace(/^\/+/, '').split(/\/+/).map(encodeURIComponent).join('/')
    const { method = POSTED.has(names) ? 'POST' : 'GET', once = POSTED.get(names) ?? false, headers, signal } = options
    const url = `${this.#baseUrl}/v1/call/${names}`
    const about = { method, headers, signal, isSafe: !once }
    if (method === 'POST') return { ...about, url, body: jsonOf(parameters) }
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(parameters)) {
      for (const item of [value].flat()) if (item !== undefined && item !== null) query.append(name, String(item))
    }
    return { ...about, url: query.size === 0 ? url : `${url}?${query}` }
  }

  async #result<T>(url: string, signal: AbortSignal | undefined): Promise<T> {
    for (;;) {
      const { response, answer } = await this.#exchange({ url, isSafe: true, signal })
      if (response.status !== 202) return dataOf({ response, answer }) as T
      await pause((secondsOf(response.headers.get('retry-after')) ?? 1) * 1_000, signal)
    }
  }

  async #data<T>(exchange: Exchange): Promise<Answer<T>> {
    const received = await this.#exchange(exchange)
    return { data: dataOf(received) as T, meta: metaOf(received.response) }
  }

  /**
   * Sends a request, with retries, until its answer is final.
   * @throws GatewayError
   */
  async #exchange(exchange: Exchange): Promise<Received> {
    const { retriesMax = 2, retryWaitMsMax = 60_000, onRetry, onAnswer } = this.#options
    for (let retries = 0; ; retries += 1) {
      try {
        const received = await this.#send(exchange)
        onAnswer?.(metaOf(received.response))
        if (received.response.status >= 300) throw failed(received.response, received.answer)
        return received
      } catch (error) {
        if (!(error instanceof GatewayError) || retries >= retriesMax) throw error
        if (!(exchange.isSafe ? isPassing(error) : RETRYABLE.has(error.code) || isUnsent(error))) throw error
        // Without a Retry-After the client waits half a second, then twice as long each time. The
        // waits are random within a range, so that callers do not all return together.
        const waitMs =
          error.retryAfter === undefined ? 500 * 2 ** retries * (0.5 + Math.random()) : error.retryAfter * 1_000
        if (waitMs > retryWaitMsMax) throw error
        onRetry?.(error, waitMs, retries)
        await pause(waitMs, exchange.signal)
      }
    }
  }

  async #send({ url, method = 'GET', body, headers, signal }: Exchange): Promise<Received> {
    const { fetch: send = fetch, timeoutMs = TIMEOUT_MS } = this.#options
    const ended = new AbortController()
    const timedOut = (): void => ended.abort(new Error(`timed out after ${timeoutMs} ms`))
    const timer = setTimeout(timedOut, Math.min(timeoutMs, TIMER_MS_MAX))
    const onAbort = (): void => ended.abort(signal?.reason)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    try {
      // A header that the caller writes in another case replaces no header of the client, and is
      // not sent beside it.
      const sent = new Headers(headers)
      for (const [name, value] of Object.entries(this.#credential)) sent.set(name, value)
      sent.set('accept', 'application/json')
      if (body !== undefined) sent.set('content-type', 'application/json')
      const response = await send(url, {
        method,
        ...(body === undefined ? {} : { body }),
        headers: sent,
        // Redirects are not followed, so that the key never goes to another address.
        redirect: 'manual',
        signal: ended.signal,
      })
      return { response, answer: parse(await response.text()) }
    } catch (cause) {
      // If the caller aborted, the caller's own error is thrown.
      if (signal?.aborted) throw cause
      const message = `No answer arrived: ${reasonOf(cause)}.`
      const words = { code: 'NO_ANSWER', message, hint: 'Check baseUrl and the network.', docs: '' }
      const error = new GatewayError(0, new Headers(), words)
      error.cause = cause
      throw error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
  }
}

/** Longest time of a timer. A longer timer, such as a timeout of Infinity, would end at once. */
const TIMER_MS_MAX = 2_147_483_647

/** Statuses below 500 with which proxies report failures that pass; 0: no answer arrived. */
const PASSING: ReadonlySet<number> = new Set([0, 408, 425, 429])

/** Statuses of a server that will never do what the request demands. Other 5xx pass: 522, 529. */
const LASTING: ReadonlySet<number> = new Set([501, 505])

/**
 * Whether the same call may succeed later. For our error codes the code decides; for other answers
 * the status.
 */
function isPassing({ code, status }: GatewayError): boolean {
  const isPassingStatus = PASSING.has(status) || (status >= 500 && !LASTING.has(status))
  return RETRYABLE.has(code) || ((code === 'INVALID_ANSWER' || code === 'NO_ANSWER') && isPassingStatus)
}

/**
 * The reason of a failed fetch. Node's `fetch failed` has it as its cause, and some causes have
 * only a code.
 */
function reasonOf(failure: unknown): string {
  const { cause, message } = Object(failure)
  return String(cause?.message || cause?.code || message || failure)
}

/** Codes of failures before a connection was open, so that nothing was sent. */
const UNSENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|UND_ERR_CONNECT_TIMEOUT)$/

/** Whether a request without an answer was certainly never sent, according to Node's code. */
function isUnsent({ code, cause }: GatewayError): boolean {
  return code === 'NO_ANSWER' && UNSENT.test(String(Object(Object(cause).cause).code))
}

/**
 * JSON with big whole numbers as text, because the gateway refuses a number that a double cannot
 * hold.
 */
function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_name, member) => (typeof member === 'bigint' ? String(member) : member))
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      },
      Math.min(ms, TIMER_MS_MAX),
    )
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}
