import type { Dispatcher } from 'undici'
import type { Api } from '../../src/catalog/catalog.ts'
import type { UpstreamResponse } from '../../src/catalog/upstream-request.ts'
import type { ErrorCode } from '../../src/errors.ts'
import { furthestReach } from '../../src/queue/verdict.ts'
import { AttemptError, EndedUnsentError, StalePermitError } from '../errors/attempt-error.ts'
import type { Permit } from '../permits/permits-in-use.ts'
import type { MemoryShare } from './answer-memory.ts'
import type { CallProgress } from './outcome.ts'
import { type BodyBounds, BodyReader, decodeBody, parseJson, UNCOUNTED_BYTES_MAX } from './response-body.ts'
import type { WireRequest } from './upstream-request.ts'

const BODY_BYTES_MAX = 2 * 1024 * 1024

/**
 * Extra memory per byte of a body while it is parsed: text, objects, what they are mapped to, and
 * the reply.
 */
const PARSE_COST = 8

export interface HttpExchange {
  answer: UpstreamResponse
  text: string | undefined
}

/**
 * If the body of an error is not JSON, at most this many bytes are kept: an upstream may say "not
 * found" in words.
 */
const ERROR_TEXT_BYTES_MAX = 100

interface AttemptOptions {
  client: Dispatcher
  permit: Permit
  /**
   * The end of the call (deadline, caller gone, lock lost), or the end of the coalesced request:
   * nobody waits.
   */
  signal: AbortSignal
  /** From connect to last byte, milliseconds. */
  timeoutMs: number
  /** Learns right before the first byte is written, and when the upstream has answered. */
  progress: Pick<CallProgress, 'reach'>
  /** Absent for requests of ours, whose answers are small. */
  memory?: MemoryShare | undefined
}

/**
 * One HTTP exchange, bounded in time and size. A redirect is an answer like any other. The permit
 * is checked right before the first byte is written.
 * @throws StalePermitError or EndedUnsentError if nothing was sent; AttemptError when no usable
 *   answer came, or no connection; the signal's reason when the call ended after that
 */
export async function attempt(api: Api, request: WireRequest, options: AttemptOptions): Promise<HttpExchange> {
  const { signal, memory } = options
  const bytesMax = api.upstream.bodyBytesMax ?? BODY_BYTES_MAX
  const response: ResponseInProgress = { isRequested: false, status: 0, headers: {}, body: Buffer.alloc(0) }
  try {
    await exchangeBytes(request, response, { ...options, bytesMax })
    const encoding = response.headers['content-encoding']
    const body =
      encoding === undefined ? response.body : await decodeBody(response.body, encoding, { bytesMax, memory, signal })
    if (body.length > UNCOUNTED_BYTES_MAX) await memory?.take(body.length * PARSE_COST, signal)
    const json = parseJson(body, api.upstream.own !== undefined)
    const { status, headers } = response
    const isWords = json === undefined && status >= 400
    const words = isWords ? { errorText: body.toString('utf8', 0, ERROR_TEXT_BYTES_MAX) } : {}
    return { answer: { status, headers, body: json?.value, ...words }, text: json?.text }
  } catch (cause) {
    memory?.giveBack()
    if (cause instanceof StalePermitError) throw cause
    if (signal.aborted) {
      if (response.isRequested) throw signal.reason
      throw new EndedUnsentError('the call ended before anything was sent', { cause: signal.reason })
    }
    // Status and headers count whatever became of the body: above all a reported limit.
    if (response.status >= 400) {
      return { answer: { status: response.status, headers: response.headers, body: undefined }, text: undefined }
    }
    throw toAttemptError(cause, response)
  }
}

/** The status is 0 before there is a status. */
interface ResponseInProgress {
  /** The first byte of the request was written, or may have been. */
  isRequested: boolean
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** An attempt that took too long. Its code says, as undici's codes do, what it waited for. */
class AttemptTimeoutError extends Error {
  readonly code: string

  constructor({ isRequested, status }: ResponseInProgress) {
    super('the attempt took too long')
    if (!isRequested) this.code = 'UND_ERR_CONNECT_TIMEOUT'
    else this.code = status === 0 ? 'UND_ERR_HEADERS_TIMEOUT' : 'UND_ERR_BODY_TIMEOUT'
  }
}

type ExchangeBounds = AttemptOptions & Pick<BodyBounds, 'bytesMax'>

/** Fills `response`. By undici's `dispatch`: a third of the CPU of `fetch`. */
function exchangeBytes(
  { origin, path, method = 'GET', headers, body }: WireRequest,
  response: ResponseInProgress,
  { client, permit, progress, signal, timeoutMs, bytesMax, memory }: ExchangeBounds,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined
    let ended: Error | undefined
    const reader = new BodyReader({ bytesMax, memory, signal })
    const timeout = new PausableTimeout(timeoutMs, () => fail(new AttemptTimeoutError(response)))
    const end = (): void => {
      timeout.end()
      signal.removeEventListener('abort', onAbort)
    }
    const fail = (reason: Error): void => {
      ended ??= reason
      end()
      controller?.abort(reason)
      reject(reason)
    }
    const onAbort = (): void => fail(new Error('the call ended'))
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) {
      onAbort()
      return
    }
    timeout.start()
    client.dispatch(
      // For methods other than GET, this says to undici that it may not send them twice.
      { origin, path, method, headers, body: body ?? null, idempotent: method === 'GET' },
      {
        onRequestStart: (started) => {
          // Thrown, not aborted: undici then keeps the connection for the next permit. Without
          // that, an upstream that takes longer to connect to than a permit lasts would never be
          // reached.
          if (ended) throw ended
          if (!permit.isFresh()) throw new StalePermitError('permit too old')
          controller = started
          response.isRequested = true
          progress.reach = furthestReach(progress.reach, 'sent')
        },
        onResponseStart: (_controller, status, answerHeaders) => {
          response.status = status
          progress.reach = 'answered'
          response.headers = singleValued(answerHeaders)
        },
        onResponseData: (exchange, chunk) => {
          const waiting = reader.add(chunk)
          if (waiting) standStill(exchange, timeout, waiting)
        },
        onResponseEnd: () => {
          end()
          response.body = reader.whole()
          resolve()
        },
        onResponseError: (_controller, error) => {
          end()
          reject(error)
        },
      },
    )
  })
}

/** The upstream is not to blame for the time until there is memory. */
function standStill(exchange: Dispatcher.DispatchController, timeout: PausableTimeout, waiting: Promise<void>): void {
  timeout.pause()
  exchange.pause()
  waiting.then(
    () => {
      if (timeout.isOver) return
      timeout.start()
      exchange.resume()
    },
    // The end of the attempt, which has ended the exchange.
    () => undefined,
  )
}

/** A time limit that can be paused. */
class PausableTimeout {
  isOver = false
  #remainingMs: number
  readonly #onEnd: () => void
  #startedAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(timeoutMs: number, onEnd: () => void) {
    this.#remainingMs = timeoutMs
    this.#onEnd = onEnd
  }

  start(): void {
    if (this.#timer || this.isOver) return
    this.#startedAt = performance.now()
    this.#timer = setTimeout(this.#onEnd, this.#remainingMs)
  }

  pause(): void {
    if (!this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#remainingMs -= performance.now() - this.#startedAt
  }

  end(): void {
    this.isOver = true
    clearTimeout(this.#timer)
  }
}

function singleValued(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const single: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) single[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return single
}

const TIMEOUT_CODES = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

/**
 * The cause may name a host, never a URL. If no connection was ready, it is certain that nothing
 * was sent, whatever the cause.
 */
function toAttemptError(cause: unknown, { isRequested }: ResponseInProgress): AttemptError {
  const code = cause instanceof Error ? Reflect.get(cause, 'code') : undefined
  const reach = isRequested ? 'sent' : 'unsent'
  const error = (as: ErrorCode, isRetryable: boolean) => new AttemptError(as, { isRetryable, cause, reach })
  if (code === 'BODY_TOO_LARGE') return error('UPSTREAM_TOO_LARGE', false)
  if (code === 'BODY_UNREADABLE') return error('UPSTREAM_INVALID_RESPONSE', false)
  if (typeof code === 'string' && TIMEOUT_CODES.has(code)) return error('UPSTREAM_TIMEOUT', true)
  return error('UPSTREAM_ERROR', code !== 'BLOCKED_ADDRESS')
}
