import type { Api } from '../../src/catalog/catalog.ts'
import type { CallContext, Endpoint } from '../../src/catalog/endpoint.ts'
import type { UpstreamRequest } from '../../src/catalog/upstream-request.ts'
import { ERRORS } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { hasReached } from '../../src/queue/verdict.ts'
import { type CapBucket, SHARED_BUCKET, voterOf, waitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { AttemptError, StatusError } from '../errors/attempt-error.ts'
import { permitRequestOf } from '../permits/local-waiters.ts'
import { MemoryShare } from './answer-memory.ts'
import { type Interpretation, MOMENTARY, mapAnswers } from './interpret.ts'
import { takePrefetched, type UnlessFilled } from './item-pool.ts'
import { limitCaller, limitedCallerOf, limitedMs } from './limited-callers.ts'
import { attemptFailure, dataOutcome, type Failure, failureOutcome, type Outcome } from './outcome.ts'
import { LIMIT_MS_DEFAULT, requestedWaitMs } from './rate-headers.ts'
import { AttemptRecorder } from './record-attempt.ts'
import { withRetries } from './retry.ts'
import { attemptTimeoutMs, type ClassifiedExchange, type Sending, sendUnderPermit } from './send-under-permit.ts'
import type { UpstreamDeps } from './upstream-deps.ts'
import { buildWireRequest, redirectedRequest, type WireRequest } from './upstream-request.ts'

export interface UpstreamCall extends Omit<Sending, 'recorder' | 'memory' | 'permitRequest'> {
  endpoint: Endpoint
  call: CallJob
  bucket: CapBucket
  /** If the call must wait, identical calls find it in the queue under this key. */
  coalescedKey?: string | undefined
  /** Its failures are not repeated. */
  isNotRepeated?: boolean
}

type RecordedCall = UpstreamCall & Sending

/** Sends a call's requests, each under a permit and repeated if that may help. */
export async function callUpstream(deps: UpstreamDeps, upstreamCall: UpstreamCall): Promise<Outcome> {
  const { api, endpoint, bucket, coalescedKey, call } = upstreamCall
  // The parameters of a call may be why the upstream limits the gateway, unless the call has a key
  // of its caller's own.
  const caller = bucket === SHARED_BUCKET ? limitedCallerOf(api.slug, call) : undefined
  const waitMs = caller ? await limitedMs(deps, caller) : 0
  if (waitMs > 0) return { ...CALLER_LIMITED, retryAfterMs: waitMs }
  const context: CallContext = { now: Date.now() }
  const memory = new MemoryShare(deps.answerMemory)
  const recorder = new AttemptRecorder(deps, {
    slug: api.slug,
    source: 'call',
    endpoint: call.endpoint,
    isPlain: call.extra.length === 0,
    voter: voterOf(call),
    concurrency: api.caps.concurrency,
    memory,
    traceparent: call.traceparent,
  })
  const entry = waitQueueEntry(call, { slug: api.slug, bucket, coalescedKey })
  // The ticket is of the queue of the call's own API, and the fallback source has another queue.
  const tag = api.slug === call.slug ? call.ticket?.tag : undefined
  const permitRequest = permitRequestOf(entry, call.deadline, tag)
  try {
    const exchanges = await sendRequests(deps, { ...upstreamCall, permitRequest, recorder, memory }, context)
    const read = readExchanges(exchanges, { endpoint, parameters: call.parameters, context })
    if (!('data' in read)) {
      const { responseClass, cause } = read
      recorder.flush(responseClass.code)
      const failure = failureOutcome(responseClass, cause)
      if (responseClass.code !== 'UPSTREAM_RATE_LIMITED') return failure
      const { retryAfterMs = LIMIT_MS_DEFAULT } = responseClass
      if (caller && call.extra.length > 0) await limitCaller(deps, caller, retryAfterMs)
      return { ...failure, retryAfterMs }
    }
    const { data } = read
    recorder.noteMembers({ upstream: api.upstream, path: call.endpoint, endpoint, parameters: call.parameters, data })
    return call.raw ? { body: rawBody(exchanges), data } : dataOutcome(data)
  } catch (error) {
    if (!(error instanceof AttemptError)) throw error
    // An earlier attempt of this call may have sent a request.
    const { reach } = upstreamCall.progress
    return { ...attemptFailure(error), ...(hasReached(reach, 'maybe-sent') ? { reach } : {}) }
  } finally {
    recorder.flush()
    memory.giveBack()
  }
}

/** One exchange for each request of the call, or for what was fetched ahead for it. */
async function sendRequests(
  deps: UpstreamDeps,
  recordedCall: RecordedCall,
  context: CallContext,
): Promise<ClassifiedExchange[]> {
  const { api, endpoint, call, signal } = recordedCall
  const { extra, parameters } = call
  // Undeclared parameters may change the answer.
  if (endpoint.pool && extra.length === 0) {
    const send = (request: UpstreamRequest, unlessFilled: UnlessFilled): Promise<ClassifiedExchange> =>
      sendWithRetries(deps, { ...recordedCall, ...unlessFilled }, request)
    const drawn = await takePrefetched(deps, { api, endpoint, rule: endpoint.pool, parameters, send }, signal)
    if (drawn) return [drawn]
  }
  const exchanges: ClassifiedExchange[] = []
  for (const request of requestsOf(endpoint, call, context))
    exchanges.push(await sendWithRetries(deps, recordedCall, request))
  return exchanges
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
  message: 'The upstream API is limiting your calls with these parameters.',
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

function sendWithRetries(
  deps: UpstreamDeps,
  recordedCall: RecordedCall,
  request: UpstreamRequest,
): Promise<ClassifiedExchange> {
  const { api, endpoint, isNotRepeated, progress, remainingMs, signal } = recordedCall
  const mayRepeat = (): boolean =>
    !isNotRepeated && (endpoint.effect !== 'once' || !hasReached(progress.reach, 'maybe-sent'))
  return withRetries((tryNumber) => sendAndCheck(deps, recordedCall, { request, tryNumber }), {
    mayRepeat,
    budget: deps.budgetOf(api),
    retryMsMin: attemptTimeoutMs(deps, recordedCall),
    remainingMs,
    signal,
  })
}

/**
 * Sends a request, and a request for each redirect within the upstream's own origin. Each takes a
 * permit.
 *
 * @throws AttemptError if no answer came, or if the answer says that the upstream failed
 */
async function sendAndCheck(
  deps: UpstreamDeps,
  recordedCall: RecordedCall,
  { request, tryNumber }: { request: UpstreamRequest; tryNumber: number },
): Promise<ClassifiedExchange> {
  const { api, call, currentKey, recorder, progress, times } = recordedCall
  const attemptsBefore = times.attempts
  recorder.beginTry(tryNumber)
  try {
    let sent: WireRequest | undefined
    let result = await sendUnderPermit(deps, recordedCall, () => {
      sent = buildWireRequest(api, request, { extra: call.extra, key: currentKey(), contact: deps.contact })
      return sent
    })
    for (let hops = api.upstream.redirectsMax ?? 0; hops > 0; hops -= 1) {
      const next = sent && redirectedRequest(api, sent, result.answer)
      if (!next) break
      sent = next
      result = await sendUnderPermit(deps, recordedCall, () => next)
    }
    throwIfFailed(api, result)
    progress.lastFailure = undefined
    return result
  } catch (error) {
    if (!(error instanceof AttemptError)) throw error
    // Several attempts may belong to one try, because a redirect takes another request.
    if (times.attempts > attemptsBefore) progress.lastFailure = error
    // Without an attempt, the failure of an earlier try says more.
    else if (tryNumber > 1 && progress.lastFailure) throw progress.lastFailure
    throw error
  }
}

/** @throws AttemptError UPSTREAM_ERROR */
function throwIfFailed({ upstream }: Api, { answer, responseClass }: ClassifiedExchange): void {
  if (responseClass?.code !== 'UPSTREAM_ERROR') return
  const { status, headers } = answer
  const retryAfterMs = requestedWaitMs(upstream, headers, Date.now())
  // A route that has moved, or a refusal, is the same the next time.
  const isRetryable = status < 400 || status >= 500 || MOMENTARY.has(status)
  throw new AttemptError(responseClass.code, {
    isRetryable,
    cause: new StatusError(status),
    retryAfterMs,
    reach: 'answered',
  })
}

/** An array if one call took several requests. */
function rawBody(exchanges: ClassifiedExchange[]): Buffer {
  const texts = exchanges.map(({ text }) => text ?? 'null')
  return Buffer.from(texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(',')}]`)
}
