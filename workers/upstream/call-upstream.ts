import type { CallContext, Endpoint } from '../../src/catalog/endpoint.ts'
import type { UpstreamRequest } from '../../src/catalog/upstream-request.ts'
import { ERRORS } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { hasReached } from '../../src/queue/verdict.ts'
import { SHARED_BUCKET, voterOf } from '../../src/queue/wait-queue-entry.ts'
import { AttemptError, StatusError } from '../errors/attempt-error.ts'
import type { MemoryShare } from './answer-memory.ts'
import { type Interpretation, MOMENTARY, mapAnswers } from './interpret.ts'
import { takePrefetched, type UnlessFilled } from './item-pool.ts'
import { limitCaller, limitedMs } from './limited-callers.ts'
import { attemptFailure, dataOutcome, type Failure, failureOutcome, type Outcome } from './outcome.ts'
import { LIMIT_MS_DEFAULT, requestedWaitMs } from './rate-headers.ts'
import { AttemptRecorder } from './record-attempt.ts'
import { withRetries } from './retry.ts'
import { attemptTimeoutMs, type ClassifiedExchange, type Sending, sendUnderPermit } from './send-under-permit.ts'
import type { UpstreamDeps } from './upstream-deps.ts'
import { buildWireRequest, redirectedRequest, type WireRequest } from './upstream-request.ts'

export interface UpstreamCall extends Omit<Sending, 'recorder'> {
  endpoint: Endpoint
  call: CallJob
}

/** Sends a call's requests, each under a permit and repeated if that may help. */
export function callUpstream(deps: UpstreamDeps, upstreamCall: UpstreamCall): Promise<Outcome> {
  return deps.answerMemory.within((memory) => sendAll(deps, { ...upstreamCall, memory }))
}

async function sendAll(deps: UpstreamDeps, upstreamCall: UpstreamCall & { memory: MemoryShare }): Promise<Outcome> {
  const { api, endpoint, bucket, call, signal } = upstreamCall
  // The undeclared parameters of a call may be why the upstream limits the gateway, unless the call
  // has a key of its caller's own.
  const mayBeLimited = call.extra.length > 0 && bucket === SHARED_BUCKET
  const caller = mayBeLimited ? { slug: api.slug, accountId: call.accountId } : undefined
  const waitMs = caller ? await limitedMs(deps, caller) : 0
  if (waitMs > 0) return { ...CALLER_LIMITED, retryAfterMs: waitMs }
  const context: CallContext = { now: Date.now() }
  const recorder = new AttemptRecorder(deps, {
    slug: api.slug,
    source: 'call',
    isPlain: call.extra.length === 0,
    voter: voterOf(call),
    concurrency: api.caps.concurrency,
    waitedForMemoryMs: upstreamCall.memory.waitedMs,
    traceparent: call.traceparent,
  })
  const send = (request: UpstreamRequest, unlessFilled: UnlessFilled = {}): Promise<ClassifiedExchange> =>
    sendWithRetries(deps, { ...upstreamCall, ...unlessFilled, recorder }, request)
  const exchanges: ClassifiedExchange[] = []
  // Undeclared parameters may change the answer.
  const pool = call.extra.length === 0 ? endpoint.pool : undefined
  try {
    const drawn =
      pool && (await takePrefetched(deps, { api, endpoint, rule: pool, parameters: call.parameters, send }, signal))
    if (drawn) exchanges.push(drawn)
    else for (const request of requestsOf(endpoint, call, context)) exchanges.push(await send(request))
  } catch (error) {
    recorder.flush()
    if (!(error instanceof AttemptError)) throw error
    // An earlier attempt of this call may have sent a request.
    const { reach } = upstreamCall.progress
    return { ...attemptFailure(error), ...(hasReached(reach, 'maybe-sent') ? { reach } : {}) }
  }
  const read = readExchanges(exchanges, { endpoint, parameters: call.parameters, context })
  if (!('data' in read)) {
    const { responseClass, cause } = read
    recorder.flush(responseClass.code)
    const failure = failureOutcome(responseClass, cause)
    if (responseClass.code !== 'UPSTREAM_RATE_LIMITED') return failure
    const { retryAfterMs = LIMIT_MS_DEFAULT } = responseClass
    if (caller) await limitCaller(deps, caller, retryAfterMs)
    return { ...failure, retryAfterMs }
  }
  const { data } = read
  recorder.noteMembers({ upstream: api.upstream, path: call.endpoint, endpoint, parameters: call.parameters, data })
  recorder.flush()
  return call.raw ? { body: rawBody(exchanges), data } : dataOutcome(data)
}

/**
 * The requests of a call; if the upstream takes an id of the call, it is the same in every attempt
 * and every run.
 */
function requestsOf(endpoint: Endpoint, { id, parameters }: CallJob, context: CallContext): UpstreamRequest[] {
  const requests = [endpoint.request(parameters, context)].flat()
  const { idempotencyHeader } = endpoint
  if (idempotencyHeader === undefined) return requests
  return requests.map((request) => ({ ...request, headers: { ...request.headers, [idempotencyHeader]: id } }))
}

const CALLER_LIMITED: Failure = {
  code: 'UPSTREAM_RATE_LIMITED',
  message: 'The upstream API is limiting your calls with parameters that the endpoint does not declare.',
  reach: 'unsent',
}

function readExchanges(
  exchanges: ClassifiedExchange[],
  { endpoint, ...call }: { endpoint: Endpoint; parameters: Record<string, unknown>; context: CallContext },
): Interpretation {
  for (const { responseClass, answer } of exchanges) {
    if (!responseClass) continue
    const { status } = answer
    const saysMore = status >= 400 && status !== ERRORS[responseClass.code].status
    return { responseClass, ...(saysMore ? { cause: new StatusError(status) } : {}) }
  }
  return mapAnswers(
    endpoint,
    exchanges.map(({ answer }) => answer),
    call,
  )
}

type CallWithRecorder = UpstreamCall & { recorder: AttemptRecorder }

function sendWithRetries(
  deps: UpstreamDeps,
  upstreamCall: CallWithRecorder,
  request: UpstreamRequest,
): Promise<ClassifiedExchange> {
  const { api, endpoint, call, currentKey, recorder, progress, times, remainingMs, signal } = upstreamCall
  const { contact } = deps
  let wire: WireRequest | undefined
  const currentWire = (): WireRequest => {
    const key = currentKey()
    if (!wire || wire.key !== key) wire = buildWireRequest(api, request, { extra: call.extra, key, contact })
    return wire
  }
  const run = async (tryNumber: number): Promise<ClassifiedExchange> => {
    const attemptsBefore = times.attempts
    try {
      recorder.beginTry(tryNumber)
      const exchange = await sendAndCheck(deps, upstreamCall, currentWire)
      progress.lastFailure = undefined
      return exchange
    } catch (error) {
      // Several attempts may belong to one try, because a redirect takes another request.
      const isWithoutAttempt = error instanceof AttemptError && times.attempts === attemptsBefore
      // The failure of an earlier try says more.
      if (isWithoutAttempt && tryNumber > 1 && progress.lastFailure) throw progress.lastFailure
      if (error instanceof AttemptError && !isWithoutAttempt) progress.lastFailure = error
      throw error
    }
  }
  const mayRepeat = (): boolean => endpoint.effect !== 'once' || !hasReached(progress.reach, 'maybe-sent')
  const retryMsMin = attemptTimeoutMs(deps, api)
  return withRetries(run, { mayRepeat, budget: deps.budgetOf(api), retryMsMin, remainingMs, signal })
}

/**
 * Sends a request, and a request for each redirect within the upstream's own origin. Each takes a
 * permit.
 *
 * @throws AttemptError also if the answer says that the upstream failed, which may be repeated
 */
async function sendAndCheck(
  deps: UpstreamDeps,
  upstreamCall: CallWithRecorder,
  first: () => WireRequest,
): Promise<ClassifiedExchange> {
  const { api } = upstreamCall
  let result = await sendUnderPermit(deps, upstreamCall, first)
  let currentWire = first
  for (let hops = api.upstream.redirectsMax ?? 0; hops > 0; hops -= 1) {
    const next = redirectedRequest(api, currentWire(), result.answer)
    if (!next) break
    currentWire = () => next
    result = await sendUnderPermit(deps, upstreamCall, currentWire)
  }
  const { status, headers } = result.answer
  const code = result.responseClass?.code
  if (code !== 'UPSTREAM_ERROR') return result
  const retryAfterMs = requestedWaitMs(api.upstream, headers, Date.now())
  // A route that has moved, or a refusal, is the same the next time.
  const isRetryable = status < 400 || status >= 500 || MOMENTARY.has(status)
  throw new AttemptError(code, { isRetryable, cause: new StatusError(status), retryAfterMs, reach: 'answered' })
}

/** An array if one call took several requests. */
function rawBody(exchanges: ClassifiedExchange[]): Buffer {
  const texts = exchanges.map(({ text }) => text ?? 'null')
  return Buffer.from(texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(',')}]`)
}
