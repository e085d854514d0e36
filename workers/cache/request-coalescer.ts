import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { rejectOnAbort } from '../../src/async/abort.ts'
import { BEGUN, type CacheKeys, type Lead } from '../../src/cache/cache-key.ts'
import type { CacheEntry } from '../../src/cache/response-cache.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { LOCK_LOST } from '../errors/abort-reasons.ts'
import type { CallProgress, Outcome } from '../upstream/outcome.ts'
import { hasBegun, Leads } from './leads.ts'

/** How often a process checks whether another process still leads, milliseconds. */
const FOLLOW_EVERY_MS = 40

export interface Subscriber extends Pick<CallJob, 'id' | 'deadline'> {
  signal: AbortSignal
  progress: CallProgress
  /**
   * Its place comes before the place of a call that may lead: while that call's request is not
   * sent, it leads a request of its own.
   */
  mayOvertake?: boolean
}

export interface CoalescedRequest {
  readonly signal: AbortSignal
  /** The latest deadline of its subscribers. It may grow, so read it each time. */
  readonly deadline: number
  readonly progress: CallProgress
  /**
   * The command that stores the answer ends the lead, unless answers are in another Redis. New for
   * each request: an earlier run of the same call may still lead under its own token, and a command
   * that is sent again recognises this token.
   */
  readonly lead: Lead
}

export interface RequestResult {
  outcome: Outcome
  /**
   * How long the answer is fresh, milliseconds. Set only if the answer was stored, which also ended
   * the request's `lead`.
   */
  freshMs?: number | undefined
  /** The `traceparent` of the call that fetched it; absent if that call is not traced. */
  fetchedBy?: string | undefined
  /**
   * Instead of a request: the answer that another call had stored when this call took the lead, or
   * when its permit came.
   */
  found?: CacheEntry | undefined
}

export interface SharedResult extends RequestResult {
  /** Whether another call of this process began the request. */
  isCollapsed: boolean
}

/** `mayBeStored`: whether the previous leader may have stored the answer. */
type Work = (request: CoalescedRequest, mayBeStored: boolean) => Promise<RequestResult>

interface RunningRequest extends CoalescedRequest {
  /** The id of the call whose place in the wait queue the request uses. */
  callId: string
  work: Work
  isOver: boolean
  subscribers: Set<Subscriber>
  deadline: number
  /**
   * A call that shares it runs in another worker now, which may have its place in the wait queue.
   */
  hasLostLock: boolean
  ending: AbortController
  ended: Promise<RequestResult>
}

/**
 * Lets identical calls of the whole fleet share one request: a process leads it, or follows another
 * process. If a request is not sent yet, a call with an earlier place overtakes it: it leads a
 * request of its own, which later calls share. The overtaken request keeps its place. When its
 * permit comes, its calls find the answer stored. A request ends with its last subscriber in this
 * process. Processes that follow then send a request of their own, as they do if the request brings
 * no answer that can be stored.
 */
export class RequestCoalescer {
  readonly #leads: Leads
  readonly #isStoreElsewhere: boolean
  readonly #requests = new Map<string, RunningRequest>()

  /** `isStoreElsewhere`: whether answers are stored in another Redis than the leads. */
  constructor(redis: RedisConnection, { isStoreElsewhere = false } = {}) {
    this.#leads = new Leads(redis)
    this.#isStoreElsewhere = isStoreElsewhere
  }

  /** Whether a call of this process leads or follows the request for this answer. */
  isSharedHere(keys: CacheKeys): boolean {
    return this.#requests.has(keys.answer)
  }

  /** `work` finds or makes the answer if no other call does so already. */
  async join(keys: CacheKeys, subscriber: Subscriber, work: Work): Promise<SharedResult> {
    const known = this.#requests.get(keys.answer)
    const isOvertaken = subscriber.mayOvertake && known && !hasBegun(known.progress)
    const shared = isOvertaken ? undefined : known
    const request = shared ?? this.#start(keys, subscriber, work)
    const { deadline, signal, progress } = subscriber
    request.subscribers.add(subscriber)
    request.deadline = Math.max(request.deadline, deadline)
    progress.ofRequest = request.progress
    try {
      const result = await Promise.race([request.ended, rejectOnAbort(signal)])
      return { ...result, isCollapsed: shared !== undefined }
    } finally {
      request.subscribers.delete(subscriber)
      if (!request.isOver) this.#leave(request, subscriber)
    }
  }

  /** A call stops waiting for a request. If it is the last call, the request ends. */
  #leave(request: RunningRequest, { id, signal, progress }: Subscriber): void {
    if (signal.reason === LOCK_LOST) request.hasLostLock = true
    // The call whose place in the wait queue the request uses learns when the request has ended.
    if (id === request.callId) progress.sharedRequestEnd = request.ended
    if (request.subscribers.size > 0) return
    this.#forget(request)
    // After a lost lock, the worker that has the call now has its place in the wait queue.
    request.ending.abort(request.hasLostLock ? LOCK_LOST : new Error('nobody waits for the answer'))
  }

  #forget(request: RunningRequest): void {
    const { answer } = request.lead.keys
    if (this.#requests.get(answer) === request) this.#requests.delete(answer)
  }

  #start(keys: CacheKeys, subscriber: Subscriber, work: Work): RunningRequest {
    const { id, deadline, mayOvertake = false } = subscriber
    const ending = new AbortController()
    const token = randomUUID()
    const { promise: ended, resolve } = Promise.withResolvers<RequestResult>()
    const request: RunningRequest = {
      lead: { keys, tokens: [token, token + BEGUN] },
      callId: id,
      work,
      isOver: false,
      deadline,
      progress: { reach: 'unsent' },
      subscribers: new Set(),
      hasLostLock: false,
      ending,
      signal: ending.signal,
      ended,
    }
    this.#requests.set(keys.answer, request)
    resolve(this.#leadOrFollow(request, mayOvertake))
    // All subscribers may have left.
    ended.catch(() => undefined)
    return request
  }

  async #leadOrFollow(request: RunningRequest, mayOvertake: boolean): Promise<RequestResult> {
    try {
      for (let overtakes = mayOvertake; ; overtakes = false) {
        const { isLeader, hasAnswer } = await this.#leads.take(request, overtakes)
        if (isLeader) return await this.#lead(request, hasAnswer)
        await delay(FOLLOW_EVERY_MS, undefined, { signal: request.signal })
      }
    } finally {
      request.isOver = true
      this.#forget(request)
    }
  }

  async #lead(request: RunningRequest, hasAnswer: boolean): Promise<RequestResult> {
    const stopRenewing = this.#leads.renew(request)
    let hasEnded = false
    try {
      // A leader stores its answer before it ends its lead, so the answer can be read now.
      const answer = await request.work(request, hasAnswer || this.#isStoreElsewhere)
      // The command that stored the answer has ended the lead.
      hasEnded = answer.freshMs !== undefined && !this.#isStoreElsewhere
      return answer
    } finally {
      stopRenewing()
      if (!hasEnded) this.#leads.end(request.lead)
    }
  }
}
