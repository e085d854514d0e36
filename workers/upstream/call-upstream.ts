import type { Dispatcher } from 'undici'
import type { CapBucket } from '../../src/caps/bucket.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import type { CallContext, Endpoint, UpstreamRequest, UpstreamResponse } from '../../src/catalog/upstream.ts'
import type { Log } from '../../src/log.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { CallTimes } from '../../src/queue/reply-head.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import type { PermitRequest } from '../permits/late-join.ts'
import type { Permit, PermitClient } from '../permits/permit-client.ts'
import { attempt, EndedUnsentError, type HttpExchange, StalePermitError } from './attempt.ts'
import { AttemptError, StatusError } from './attempt-error.ts'
import { countPermitWait } from './count-permit-wait.ts'
import { classifyResponse, interpretAnswers, rateLeft, requestedWaitMs } from './interpret.ts'
import { takePrefetched } from './item-pool.ts'
import { attemptFailure, dataOutcome, failureOutcome, type Outcome } from './outcome.ts'
import { AttemptRecorder, BreakerOpenError, type HealthDeps } from './record-attempt.ts'
import { type RetryBudget, withRetries } from './retry.ts'
import { buildWireRequest, redirectedRequest, type WireRequest } from './upstream-request.ts'

/** For an upstream that limits without saying for how long, milliseconds. */
const CLOSED_MS = 60_000

const ATTEMPT_TIMEOUT_MS = 10_000

/** Time between the last attempt and the deadline for the reply, milliseconds. */
const ANSWER_MS = 200

export interface UpstreamDeps extends HealthDeps {
  redis: RedisConnection
  log: Log
  contact: string
  /** Whatever the upstream's file says, milliseconds. */
  attemptTimeoutMsMax: number
  clientOf: (api: Api, bucket: CapBucket) => Dispatcher
  permitClientOf: (api: Pick<Api, 'slug'>, bucket: CapBucket) => PermitClient
  budgetOf: (api: Api) => RetryBudget
}

export interface UpstreamCall {
  api: Api
  endpoint: Endpoint
  call: CallJob
  currentKey: () => string | undefined
  bucket: CapBucket
  permitRequest: PermitRequest
  /** Asked again when the permit is there, which a call may wait long for. @throws GatewayError where the API is shut by then */
  ensureOpen?: () => void
  times: CallTimes
  progress: CallProgress
  remainingMs: () => number
  signal: AbortSignal
  /** Of the call itself, where `signal` is that of the request that it shares. */
  callSignal?: AbortSignal
}

/** How far a call's request is, which decides the outcome at the deadline. */
export interface CallProgress {
  /** An attempt goes on, its connection included; `isSent`: its request was written, or may have been. */
  isUnderWay?: boolean
  isSent?: boolean
  lastFailure?: AttemptError
  /** Of the coalesced request that this call shares. */
  ofRequest?: CallProgress
  /** Settles with the coalesced request that goes on for others in the call's place of the wait queue. */
  goesOn?: Promise<unknown>
}

/** Sends a call's requests, each under a permit and repeated where that may help. */
export async function callUpstream(deps: UpstreamDeps, upstreamCall: UpstreamCall): Promise<Outcome> {
  const { api, endpoint, call, signal } = upstreamCall
  const context: CallContext = { now: Date.now() }
  const recorder = new AttemptRecorder(deps, {
    slug: api.slug,
    source: 'call',
    isPlain: call.extra.length === 0,
    accountId: call.group ?? call.accountId,
    concurrency: api.caps.concurrency,
    traceparent: call.traceparent,
  })
  const send = (request: UpstreamRequest): Promise<HttpExchange> =>
    sendWithRetries(deps, { ...upstreamCall, recorder }, request)
  const exchanges: HttpExchange[] = []
  // Undeclared parameters may change the answer.
  const pool = call.extra.length === 0 ? endpoint.pool : undefined
  try {
    const drawn =
      pool && (await takePrefetched(deps, { api, endpoint, rule: pool, parameters: call.parameters, send }, signal))
    if (drawn) exchanges.push(drawn)
    else for (const request of [endpoint.request(call.parameters, context)].flat()) exchanges.push(await send(request))
  } catch (error) {
    recorder.flush()
    if (!(error instanceof AttemptError)) throw error
    const { isRefused, ...failure } = attemptFailure(error)
    // Another request of the call was sent before.
    if (upstreamCall.times.attempts > 0) return failure
    return { ...failure, isUnsent: true, ...(isRefused ? { isRefused } : {}) }
  }
  const answers = exchanges.map(({ answer }) => answer)
  const read = interpretAnswers({ upstream: api.upstream, endpoint }, answers, { parameters: call.parameters, context })
  recorder.flush('data' in read ? undefined : read.responseClass.code)
  if (!('data' in read)) {
    const { code, retryAfterMs } = read.responseClass
    const closedMs = code === 'UPSTREAM_RATE_LIMITED' && retryAfterMs === undefined ? { retryAfterMs: CLOSED_MS } : {}
    return { ...failureOutcome(read.responseClass, read.cause), ...closedMs }
  }
  return call.raw ? { body: rawBody(exchanges), data: read.data } : dataOutcome(read.data)
}

type RecordedCall = UpstreamCall & { recorder: AttemptRecorder }

function sendWithRetries(
  deps: UpstreamDeps,
  upstreamCall: RecordedCall,
  request: UpstreamRequest,
): Promise<HttpExchange> {
  const { api, endpoint, call, currentKey, recorder, progress, remainingMs, signal } = upstreamCall
  const build = () => buildWireRequest(api, request, { extra: call.extra, key: currentKey(), contact: deps.contact })
  let wire = build()
  const currentWire = (): WireRequest => {
    if (wire.key !== currentKey()) wire = build()
    return wire
  }
  const run = async (attemptNumber: number): Promise<HttpExchange> => {
    try {
      if (attemptNumber > 1) recorder.countRepeat()
      return await sendAndCheck(deps, upstreamCall, currentWire)
    } catch (error) {
      const isUnsent = error instanceof BreakerOpenError || (error instanceof AttemptError && error.isRefused)
      // The attempt before it says more.
      if (isUnsent && attemptNumber > 1 && progress.lastFailure) throw progress.lastFailure
      if (error instanceof AttemptError && !isUnsent) progress.lastFailure = error
      throw error
    }
  }
  const isIdempotent = endpoint.idempotent !== false
  const repeatMsMin = attemptTimeoutMs(deps, api)
  return withRetries(run, { isIdempotent, budget: deps.budgetOf(api), repeatMsMin, remainingMs, signal })
}

/** @throws AttemptError also where the answer says that the upstream failed, which may be repeated */
async function sendAndCheck(
  deps: UpstreamDeps,
  upstreamCall: RecordedCall,
  currentWire: () => WireRequest,
): Promise<HttpExchange> {
  const { api, endpoint } = upstreamCall
  const result = await followRedirects(deps, upstreamCall, currentWire)
  const { status, headers } = result.answer
  const code = classifyResponse(api.upstream, endpoint, result.answer)?.code
  if (code !== 'UPSTREAM_ERROR') return result
  const retryAfterMs = requestedWaitMs(api.upstream, headers, Date.now())
  throw new AttemptError(code, { isRetryable: true, cause: new StatusError(status), retryAfterMs })
}

function attemptTimeoutMs({ attemptTimeoutMsMax }: UpstreamDeps, { upstream }: Api): number {
  return Math.min(upstream.attemptTimeoutMs ?? ATTEMPT_TIMEOUT_MS, attemptTimeoutMsMax)
}

/** Within the upstream's own origin, where its file allows; each is a request that takes a permit. */
async function followRedirects(
  deps: UpstreamDeps,
  upstreamCall: RecordedCall,
  first: () => WireRequest,
): Promise<HttpExchange> {
  const { api } = upstreamCall
  let currentWire = first
  for (let hops = api.upstream.redirectsMax ?? 0; ; hops -= 1) {
    const result = await sendOnce(deps, upstreamCall, currentWire)
    const next = hops > 0 ? redirectedRequest(api, currentWire(), result.answer) : undefined
    if (!next) return result
    currentWire = () => next
  }
}

export interface Sending
  extends Pick<
    UpstreamCall,
    | 'api'
    | 'currentKey'
    | 'bucket'
    | 'permitRequest'
    | 'ensureOpen'
    | 'times'
    | 'progress'
    | 'remainingMs'
    | 'signal'
    | 'callSignal'
  > {
  endpoint: Endpoint | undefined
  recorder: AttemptRecorder
}

/** After these alone it is certain that nothing was sent, so that neither the cap nor the caller is charged; any other attempt counts, even one that did not connect. */
const UNSENT = [StalePermitError, EndedUnsentError, BreakerOpenError]

export async function sendOnce(
  deps: UpstreamDeps,
  sending: Sending,
  currentWire: () => WireRequest,
): Promise<HttpExchange> {
  const { api, endpoint, bucket, times, progress, remainingMs, signal, recorder } = sending
  const classify = ({ answer }: HttpExchange) => classifyResponse(api.upstream, endpoint, answer)?.code
  for (let isFirst = times.attempts === 0; ; isFirst = false) {
    recorder.refuseWhenOpen()
    const permit = await acquirePermit(deps, sending, isFirst)
    ensureOpenOrGiveBack(sending, permit)
    const startedAt = performance.now()
    const fullMs = attemptTimeoutMs(deps, api)
    const timeoutMs = Math.min(fullMs, Math.max(1, remainingMs() - ANSWER_MS))
    try {
      const request = currentWire()
      const send = () => {
        progress.isUnderWay = true
        return attempt(api, request, { client: deps.clientOf(api, bucket), permit, progress, signal, timeoutMs })
      }
      const result = await recorder.observe(send, classify)
      const tookMs = performance.now() - startedAt
      // Before the permit ends: the next request must find the cap as the upstream reported it.
      await applyRateLimitHeaders(deps, sending, { permit, request, answer: result.answer })
      endPermit(permit, times, tookMs)
      return result
    } catch (error) {
      if (UNSENT.some((kind) => error instanceof kind)) permit.releaseUnused()
      else endPermit(permit, times, performance.now() - startedAt)
      if (error instanceof EndedUnsentError) throw error.cause
      if (error instanceof AttemptError && error.code === 'UPSTREAM_TIMEOUT') error.isCutShort = timeoutMs < fullMs
      // The connection took longer than a permit lasts; it is ready now.
      if (!(error instanceof StalePermitError)) throw error
      await recorder.settled()
    } finally {
      progress.isUnderWay = false
      progress.isSent = false
    }
  }
}

function ensureOpenOrGiveBack({ ensureOpen }: Sending, permit: Permit): void {
  try {
    ensureOpen?.()
  } catch (error) {
    permit.releaseUnused()
    throw error
  }
}

/** Stops waiting when the breaker opens. @throws BreakerOpenError, or as `PermitClient.acquire` */
async function acquirePermit(deps: UpstreamDeps, sending: Sending, isFirst: boolean): Promise<Permit> {
  const { api, bucket, permitRequest, times, remainingMs, signal, callSignal = signal, recorder } = sending
  const endWait = countPermitWait(times, callSignal)
  const ending = new AbortController()
  const onAbort = (): void => ending.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const stopListening = recorder.onOpen((error) => ending.abort(error))
  try {
    signal.throwIfAborted()
    const request = { ...permitRequest, isUnqueued: permitRequest.isUnqueued || !isFirst }
    return await deps.permitClientOf(api, bucket).acquire(request, remainingMs, ending.signal)
  } finally {
    endWait()
    signal.removeEventListener('abort', onAbort)
    stopListening()
  }
}

function endPermit(permit: Permit, times: CallTimes, tookMs: number): void {
  times.attempts += 1
  times.upstreamMs += tookMs
  permit.release(tookMs)
}

async function applyRateLimitHeaders(
  { caps, log }: UpstreamDeps,
  { api, endpoint, bucket, currentKey }: Sending,
  { permit, request, answer }: { permit: Permit; request: WireRequest; answer: UpstreamResponse },
): Promise<void> {
  // Operators replaced the key meanwhile: its limiter says nothing of the new one's.
  if (request.key !== currentKey()) return
  const responseClass = classifyResponse(api.upstream, endpoint, answer)
  const isLimiting = responseClass?.code === 'UPSTREAM_RATE_LIMITED'
  const left = rateLeft(api.upstream, answer.headers)
  if (!isLimiting && !left) return
  const closedForMs = isLimiting ? (responseClass.retryAfterMs ?? CLOSED_MS) : undefined
  const remaining = left && { requests: left.remaining, resetMs: left.resetMs }
  await caps
    .of(api, bucket)
    .applyUpstreamLimit({ closedForMs, remaining, observedBy: permit.id })
    .catch((error) => log.warn({ err: error, slug: api.slug }, 'failed to apply the limit that an upstream reported'))
}

/** An array where one call took several requests. */
function rawBody(exchanges: HttpExchange[]): Buffer {
  const texts = exchanges.map(({ text }) => text ?? 'null')
  return Buffer.from(texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(',')}]`)
}
