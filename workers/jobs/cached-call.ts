import { type CacheKeys, cacheKeys, type Lead } from '../../src/cache/cache-key.ts'
import { type CacheEntry, isUsableWithoutUpstream, stalenessMs } from '../../src/cache/response-cache.ts'
import { refusalOf } from '../../src/caps/refusal.ts'
import { ERRORS, type ErrorCode } from '../../src/errors.ts'
import { NO_BODY } from '../../src/queue/reply-head.ts'
import type { CoalescedRequest, RequestResult, SharedResult } from '../cache/request-coalescer.ts'
import type { Permit } from '../permits/permits-in-use.ts'
import { callUpstream, type UpstreamCall } from '../upstream/call-upstream.ts'
import { callWithFallback } from '../upstream/call-with-fallback.ts'
import { isCutShort, isFailure, isOfOneCall, isUnsent, type Outcome } from '../upstream/outcome.ts'
import type { WorkerDeps } from './worker-deps.ts'

export interface CallOutcome {
  outcome: Outcome
  /** RFC 9211; undefined if answers are not stored. */
  cacheStatus?: string
  ageSeconds?: number
  /** How long identical calls need no request, milliseconds. */
  freshMs?: number | undefined
  /** The `traceparent` of the call for which the answer was fetched, if that was another call. */
  fetchedBy?: string | undefined
  /** Work after the reply, in the call's place of the wait queue: refreshes a stale answer. */
  afterwards?: () => Promise<unknown>
}

/**
 * Why a stored answer is served without a request, as the `detail` of `Cache-Status` (RFC 9211,
 * 2.8), by the code of the failure that a call without a stored answer would have.
 */
const WITHOUT_REQUEST: Partial<Record<ErrorCode, string>> = {
  UPSTREAM_CAP_EXHAUSTED: 'cap-exhausted',
  UPSTREAM_RATE_LIMITED: 'upstream-closed',
  UPSTREAM_UNAVAILABLE: 'upstream-down',
  OVERLOADED: 'overloaded',
}

/**
 * If the answers of the endpoint are shared, answers a call from the cache, or by one request for
 * all identical calls of the fleet. Otherwise the call gets a request of its own.
 */
export async function callThroughCache(deps: WorkerDeps, upstreamCall: UpstreamCall): Promise<CallOutcome> {
  const { api, call, endpoint } = upstreamCall
  const keys = cacheKeys(endpoint, call)
  if (!keys) return { outcome: await callSource(deps, upstreamCall) }
  const now = deps.clock.now()
  const stored = await deps.cache.get(keys.answer)
  if (stored && stalenessMs(stored, now) <= 0) return served(deps, stored)
  if (call.cacheOnly) {
    const { lastFailure } = deps.health.ofUpstream(api.slug)
    const refusal = refusalOf({ ...call.cacheOnly, lastFailure })
    const detail = WITHOUT_REQUEST[refusal.code] ?? 'no-request'
    if (stored && isUsableWithoutUpstream(stored, now)) return served(deps, stored, { detail })
    return { outcome: { ...refusal, reach: 'refused' }, cacheStatus: 'agw; fwd=miss' }
  }
  if (stored && stalenessMs(stored, now) <= stored.staleWhileRevalidateMs) {
    const answer = served(deps, stored, { detail: 'revalidating' })
    // One refresh a process is enough; more would hold workers that other calls need.
    if (deps.coalescer.isSharedHere(keys)) return answer
    return { ...answer, afterwards: async () => await shareRequest(deps, upstreamCall, keys) }
  }
  const { outcome, fetchedBy, isCollapsed, freshMs, found } = await shareRequest(deps, upstreamCall, keys)
  if (found) return served(deps, found)
  const isServerFailure = isFailure(outcome) && ERRORS[outcome.code].status >= 500
  if (isServerFailure && stored && isUsableWithoutUpstream(stored, deps.clock.now())) {
    const isWithoutRequest = isUnsent(outcome) || outcome.code === 'UPSTREAM_CAP_EXHAUSTED'
    const detail = isWithoutRequest ? WITHOUT_REQUEST[outcome.code] : undefined
    return served(deps, stored, detail === undefined ? { kind: 'fwd=stale', detail: 'upstream-failed' } : { detail })
  }
  const storedWord = freshMs === undefined ? '' : '; stored'
  return {
    outcome,
    fetchedBy,
    freshMs,
    cacheStatus: `agw; fwd=${stored ? 'stale' : 'miss'}${isCollapsed ? '; collapsed' : storedWord}`,
  }
}

/** Without stored answers. Only calls of an API with two sources pass `callWithFallback`. */
function callSource(deps: WorkerDeps, upstreamCall: UpstreamCall): Promise<Outcome> {
  return upstreamCall.api.fallback ? callWithFallback(deps, upstreamCall) : callUpstream(deps, upstreamCall)
}

interface HowServed {
  kind?: 'hit' | 'fwd=stale'
  detail?: string
}

function served(deps: WorkerDeps, entry: CacheEntry, { kind = 'hit', detail }: HowServed = {}): CallOutcome {
  const now = deps.clock.now()
  // Below 0 for a stale answer.
  const freshMs = Math.floor(-stalenessMs(entry, now))
  const ttl = Math.floor(freshMs / 1_000)
  return {
    outcome: storedOutcome(entry),
    fetchedBy: entry.fetchedBy,
    freshMs: freshMs > 0 ? freshMs : undefined,
    cacheStatus: `agw; ${kind}; ttl=${ttl}${detail === undefined ? '' : `; detail=${detail}`}`,
    ageSeconds: Math.max(0, Math.floor((now - entry.storedAt) / 1_000)),
  }
}

function storedOutcome({ body, code, message, isFromFallback }: CacheEntry): Outcome {
  return code === undefined ? { body, isFromFallback } : { code, message }
}

/**
 * A leading call's refusal is about its own account and deadline. A call that shares the refusal
 * tries again, until it has met this many refusals.
 */
const REFUSALS_SHARED_MAX = 3

/** With less time left, a call does not try again after an outcome cut short. Milliseconds. */
const OWN_REQUEST_MS_MIN = 1_000

class StoredMeanwhileError extends Error {
  readonly entry: CacheEntry

  constructor(entry: CacheEntry) {
    super('another request brought the answer')
    this.entry = entry
  }
}

/**
 * Leads the request for an answer with `upstreamCall`, or waits for the answer of an identical
 * call; tries again if what came was about another call alone.
 */
async function shareRequest(deps: WorkerDeps, upstreamCall: UpstreamCall, keys: CacheKeys): Promise<SharedResult> {
  const { call, progress, signal, remainingMs } = upstreamCall
  const subscriber = {
    id: call.id,
    deadline: call.deadline,
    signal,
    progress,
    mayOvertake: call.ticket?.isAhead === true,
  }
  let refusals = 0
  while (true) {
    const shared = await deps.coalescer.join(keys, subscriber, (request, mayBeStored) =>
      fetchAnswer(deps, upstreamCall, { keys, request, mayBeStored }),
    )
    const { isCollapsed, outcome } = shared
    if (!isCollapsed || !isOfOneCall(outcome)) return shared
    // The outcome is about the call that led, and this call may still get an answer.
    if (!isCutShort(outcome)) refusals += 1
    // Its own deadline bounds how often a call tries again after outcomes that were cut short.
    const mayTryAgain = isCutShort(outcome) ? remainingMs() > OWN_REQUEST_MS_MIN : refusals < REFUSALS_SHARED_MAX
    if (!mayTryAgain) return withoutPrivateMessage(shared)
    subscriber.mayOvertake = false
  }
}

/**
 * The message of a refusal may name the account of the leading call. Calls that share the refusal
 * get the words of its code.
 */
function withoutPrivateMessage(shared: SharedResult): SharedResult {
  const { outcome } = shared
  if (!isFailure(outcome)) return shared
  const { message: _message, ...failure } = outcome
  return { ...shared, outcome: failure }
}

/**
 * What the call that leads does: it sends a request and stores what comes, unless the answer is
 * stored already.
 */
async function fetchAnswer(
  deps: WorkerDeps,
  upstreamCall: UpstreamCall,
  { keys, request, mayBeStored }: { keys: CacheKeys; request: CoalescedRequest; mayBeStored: boolean },
): Promise<RequestResult> {
  const { cache, clock } = deps
  const ensureNotStored = async (): Promise<void> => {
    const stored = await cache.get(keys.answer)
    if (stored && stalenessMs(stored, clock.now()) <= 0) throw new StoredMeanwhileError(stored)
  }
  // Another process may have led meanwhile, for a call with an earlier place.
  const ensureNeeded = async ({ hasWaited }: Permit): Promise<void> => {
    if (hasWaited) await ensureNotStored()
  }
  const { progress, signal } = request
  const remainingMs = (): number => request.deadline - clock.now()
  // If this call must wait, identical calls find it in the queue, and take no places of their own.
  const ofRequest = { progress, signal, remainingMs, ensureNeeded, coalescedKey: keys.coalesced }
  try {
    if (mayBeStored) await ensureNotStored()
    const outcome = await callSource(deps, { ...upstreamCall, ...ofRequest })
    const freshMs = await store(deps, upstreamCall, { key: keys.answer, outcome, lead: request.lead })
    return { outcome, freshMs, fetchedBy: upstreamCall.call.traceparent }
  } catch (error) {
    if (error instanceof StoredMeanwhileError) return { outcome: storedOutcome(error.entry), found: error.entry }
    throw error
  }
}

/**
 * Stores an answer as its endpoint's rule says.
 *
 * @returns how long it is fresh, milliseconds; undefined: not stored
 */
async function store(
  { cache, clock }: WorkerDeps,
  { call, endpoint }: UpstreamCall,
  { key, outcome, lead }: { key: string; outcome: Outcome; lead: Lead },
): Promise<number | undefined> {
  const rule = endpoint.cache
  if (!rule) return undefined
  const origin = { slug: call.slug, hasUndeclared: call.extra.length > 0, owner: call.group ?? call.accountId, lead }
  const base = {
    storedAt: clock.now(),
    staleWhileRevalidateMs: 0,
    staleIfErrorMs: 0,
    fetchedBy: call.traceparent,
  }
  if (isFailure(outcome)) {
    if (outcome.code !== 'UPSTREAM_NOT_FOUND' || !rule.notFoundSeconds) return undefined
    // After undeclared parameters a 404 may be anything: the upstream need not have said "not
    // found" in its body.
    if (origin.hasUndeclared) return undefined
    const { code, message } = outcome
    const entry = { ...base, freshMs: rule.notFoundSeconds * 1_000, code, message, body: NO_BODY }
    return (await cache.store(origin, key, entry)) ? entry.freshMs : undefined
  }
  const { seconds } = rule
  const freshSeconds =
    typeof seconds === 'number' ? seconds : seconds(call.parameters, outcome.data ?? {}, { now: Date.now() })
  if (freshSeconds <= 0) return undefined
  const isStored = await cache.store(origin, key, {
    ...base,
    freshMs: freshSeconds * 1_000,
    staleWhileRevalidateMs: (rule.staleWhileRevalidateSeconds ?? 0) * 1_000,
    staleIfErrorMs: (rule.staleIfErrorSeconds ?? 0) * 1_000,
    isFromFallback: outcome.isFromFallback,
    body: outcome.body,
  })
  return isStored ? freshSeconds * 1_000 : undefined
}
