import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { rejectOnAbort } from '../../src/async/abort.ts'
import type { CacheKeys, Lead } from '../../src/cache/cache-key.ts'
import type { CacheEntry } from '../../src/cache/response-cache.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { LOCK_LOST } from '../errors/abort-reasons.ts'
import { isFailure, type Outcome } from '../upstream/outcome.ts'
import type { CallProgress } from '../upstream/send-under-permit.ts'
import { hasBegun, Leads, tokensOf } from './leads.ts'

/** How often a process looks whether another process still leads, milliseconds. */
const FOLLOW_EVERY_MS = 40

export interface Subscriber {
  /** The call's member of the wait queue. */
  member: string
  /** Redis time, milliseconds. */
  deadline: number
  signal: AbortSignal
  progress: CallProgress
  /**
   * Its place comes before the place of a call that may lead: it overtakes that call's request
   * while that request is not sent.
   */
  mayOvertake?: boolean
}

export interface CoalescedRequest {
  readonly signal: AbortSignal
  /** The latest deadline of its subscribers. It can grow, so nobody keeps a copy. */
  readonly deadline: number
  readonly progress: CallProgress
  /**
   * The lead; the command that stores the answer ends it. Undefined if answers are in another
   * Redis.
   */
  readonly lead: Lead | undefined
}

export interface RequestResult {
  outcome: Outcome
  /**
   * How long the answer is fresh, milliseconds. Set only if the answer was stored, which also ended
   * the request's `lead`.
   */
  freshMs?: number | undefined
  /** The `traceparent` of the call for which it was fetched; absent if that call is not traced. */
  fetchedBy?: string | undefined
  /**
   * Instead of a request: the answer that another call had stored when this call took the lead, or
   * when its permit came.
   */
  found?: CacheEntry | undefined
}

export interface SharedResult extends RequestResult {
  isCollapsed: boolean
}

interface Ended extends RequestResult {
  isLeader: boolean
}

/** `mayBeStored`: the leader before may have stored the answer. */
type Work = (request: CoalescedRequest, mayBeStored: boolean) => Promise<RequestResult>

interface LocalRequest extends CoalescedRequest {
  keys: CacheKeys
  /**
   * New for each request: an earlier run of the same call may still lead under its own token, and a
   * command that is sent again recognises this token.
   */
  token: string
  /** Of the call whose place in the wait queue the request has. */
  member: string
  work: Work
  isOver: boolean
  subscribers: Set<Subscriber>
  deadline: number
  /**
   * A call that shares it runs in another worker now, which may have its place in the wait queue.
   */
  hasLostLock: boolean
  ending: AbortController
  ended: Promise<Ended>
  endByOvertaker: (ended: Ended) => void
}

/**
 * Lets identical calls of the whole fleet share one request: a process leads it, or follows another
 * process. If a request is not sent yet, a call with an earlier place overtakes it with a request
 * of its own. The overtaken request goes on waiting for its permit. It ends when the other request
 * is answered or, if that request ran in another process, when its permit comes and the answer is
 * found stored. A request ends with its last subscriber in this process. Processes that follow then
 * send a request of their own, as they do if the request brings no answer that can be stored.
 */
export class RequestCoalescer {
  readonly #leads: Leads
  readonly #isStoreElsewhere: boolean
  readonly #requests = new Map<string, LocalRequest>()

  /** `isStoreElsewhere`: answers are stored in another Redis. */
  constructor(redis: RedisConnection, { isStoreElsewhere = false } = {}) {
    this.#leads = new Leads(redis)
    this.#isStoreElsewhere = isStoreElsewhere
  }

  /** Whether a call of this process leads or follows the request for this answer. */
  isSharedHere(keys: CacheKeys): boolean {
    return this.#requests.has(keys.answer)
  }

  /** `work` finds or makes the answer if no other call does. */
  async join(keys: CacheKeys, subscriber: Subscriber, work: Work): Promise<SharedResult> {
    const known = this.#requests.get(keys.answer)
    const overtaken = subscriber.mayOvertake && known && !hasBegun(known.progress) ? known : undefined
    const shared = overtaken ? undefined : known
    const request = shared ?? this.#start(keys, subscriber, work)
    if (overtaken) overtake(overtaken, request)
    subscribe(request, subscriber)
    try {
      const { isLeader, ...answer } = await Promise.race([request.ended, rejectOnAbort(subscriber.signal)])
      const isCollapsed = shared !== undefined || !isLeader
      const { outcome, fetchedBy } = answer
      return isCollapsed ? { outcome, isCollapsed, ...(fetchedBy && { fetchedBy }) } : { ...answer, isCollapsed }
    } finally {
      unsubscribe(request, subscriber)
      if (request.subscribers.size === 0) {
        this.#forget(request)
        if (!request.isOver) request.ending.abort(endReason(request, 'nobody waits for the answer'))
      }
    }
  }

  #forget(request: LocalRequest): void {
    const { answer } = request.keys
    if (this.#requests.get(answer) === request) this.#requests.delete(answer)
  }

  #start(keys: CacheKeys, subscriber: Subscriber, work: Work): LocalRequest {
    const { member, deadline, mayOvertake = false } = subscriber
    const ending = new AbortController()
    const token = randomUUID()
    const lead = this.#isStoreElsewhere ? undefined : { keys, tokens: tokensOf(token) }
    const overtaken = Promise.withResolvers<Ended>()
    const run = async (): Promise<Ended> => {
      try {
        return await this.#leadOrFollow(request, mayOvertake)
      } finally {
        request.isOver = true
        this.#forget(request)
      }
    }
    const request: LocalRequest = {
      keys,
      token,
      lead,
      member,
      work,
      isOver: false,
      deadline,
      progress: { reach: 'unsent' },
      subscribers: new Set(),
      hasLostLock: false,
      ending,
      signal: ending.signal,
      ended: Promise.race([Promise.resolve().then(run), overtaken.promise]),
      endByOvertaker: overtaken.resolve,
    }
    // All subscribers may have left.
    request.ended.catch(() => undefined)
    this.#requests.set(keys.answer, request)
    return request
  }

  async #leadOrFollow(request: LocalRequest, mayOvertake: boolean): Promise<Ended> {
    for (let overtakes = mayOvertake; ; overtakes = false) {
      const { isLeader, hasAnswer } = await this.#leads.take(request, overtakes)
      if (isLeader) return { ...(await this.#lead(request, hasAnswer)), isLeader }
      await delay(FOLLOW_EVERY_MS, undefined, { signal: request.signal })
    }
  }

  async #lead(request: LocalRequest, hasAnswer: boolean): Promise<RequestResult> {
    const stopRenewing = this.#leads.renew(request)
    let hasEnded = false
    try {
      // A leader stores its answer before it ends its lead, so the answer can be read now.
      const answer = await request.work(request, hasAnswer || this.#isStoreElsewhere)
      // The command that stored the answer has ended the lead.
      hasEnded = answer.freshMs !== undefined && request.lead !== undefined
      return answer
    } finally {
      stopRenewing()
      if (!hasEnded) this.#leads.end(request)
    }
  }
}

/**
 * If the overtaking request is answered, the calls of the overtaken request get that answer. If it
 * fails, their own request goes on.
 */
function overtake(behind: LocalRequest, ahead: LocalRequest): void {
  const endBehind = ({ outcome }: Ended): void => {
    if (isFailure(outcome) || hasBegun(behind.progress)) return
    behind.endByOvertaker({ outcome, isLeader: false })
    behind.ending.abort(endReason(behind, 'another request brought the answer'))
  }
  ahead.ended.then(endBehind, () => undefined)
}

function subscribe(request: LocalRequest, subscriber: Subscriber): void {
  request.subscribers.add(subscriber)
  request.deadline = Math.max(request.deadline, subscriber.deadline)
  subscriber.progress.ofRequest = request.progress
}

/** The call whose place in the wait queue the request uses learns its end by `sharedRequestEnd`. */
function unsubscribe(request: LocalRequest, subscriber: Subscriber): void {
  const { member, signal, progress } = subscriber
  request.subscribers.delete(subscriber)
  if (signal.reason === LOCK_LOST) request.hasLostLock = true
  if (member === request.member && !request.isOver) progress.sharedRequestEnd = request.ended
}

/**
 * The lost lock, which leaves the place in the wait queue to the worker that has the call now, or
 * why nobody needs the request.
 */
function endReason({ hasLostLock }: LocalRequest, why: string): unknown {
  return hasLostLock ? LOCK_LOST : new Error(why)
}
