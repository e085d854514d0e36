import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { rejectOnAbort } from '../../src/async/abort.ts'
import { BEGUN, type CacheKeys } from '../../src/cache/cache-key.ts'
import type { CacheEntry } from '../../src/cache/response-cache.ts'
import { decodeFrame, encodeFrame } from '../../src/queue/frame.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { extendLock, releaseLock } from '../../src/redis/lock.ts'
import { LOCK_LOST } from '../upstream/call-end.ts'
import { type Failure, isCutShort, isFailure, isOfOneCall, type Outcome } from '../upstream/outcome.ts'
import type { CallProgress } from '../upstream/send-once.ts'

/** Lifetime of a leader's key, and the interval of its renewal. Milliseconds. */
const LEADER_MS = 3_000
const LEADER_RENEW_MS = 1_000

/** How long followers in other processes find an outcome, milliseconds. Those of larger ones send requests of their own. */
const OUTCOME_MS = 1_500
const OUTCOME_BYTES_MAX = 2 * 1024 * 1024

const FOLLOW_EVERY_MS = 40

/** Lifetime of the key by which a follower in another process says that it waits, and the interval of its renewal. Milliseconds. */
const FOLLOWED_MS = 1_500
const FOLLOWED_RENEW_MS = 500

const tokensOf = (token: string): string[] => [token, token + BEGUN]

export interface Subscriber {
  /** The call's member of the wait queue. */
  member: string
  /** Redis time, milliseconds. */
  deadline: number
  signal: AbortSignal
  progress: CallProgress
  /** Its place comes before that of a call that may lead: it leads itself while that one's request is not sent. */
  isAhead?: boolean
}

/** Ends when its last subscriber has left and no other process follows. */
export interface CoalescedRequest {
  signal: AbortSignal
  /** The latest one of its subscribers. */
  deadline: () => number
  progress: CallProgress
}

export interface Answer {
  outcome: Outcome
  freshMs?: number | undefined
  /** Instead of a request: the answer that another one had stored when this call took the lead, or when its permit came. */
  found?: CacheEntry | undefined
}

/** Of another call's request it is the outcome alone. */
export interface SharedAnswer extends Answer {
  isCollapsed: boolean
}

interface Ended extends Answer {
  isLeader: boolean
}

type Work = (request: CoalescedRequest) => Promise<Answer>

interface Start {
  /** Of this request alone: a run of its call before it may still lead, and a command that is sent again finds its own. */
  token: string
  isAhead: boolean
  work: Work
  onLead: () => void
}

interface LocalRequest {
  /** Of the call whose place in the wait queue the request has. */
  member: string
  outcome: Promise<Ended>
  end: (shared: Ended) => void
  isLed: boolean
  isOver: boolean
  /** A call that shares it runs in another worker now, which may have its place in the wait queue. */
  hasLostLock: boolean
  subscribers: Set<Subscriber>
  deadline: number
  progress: CallProgress
  ending: AbortController
}

/** Lets identical calls of the whole fleet share one request: one process leads, the others follow. */
export class RequestCoalescer {
  readonly #redis: RedisConnection
  readonly #requests = new Map<string, LocalRequest>()

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  /** Whether a call of this process leads or follows the request for this answer. */
  isSharedHere(keys: CacheKeys): boolean {
    return this.#requests.has(keys.entry)
  }

  /** `work` makes the outcome where no other call does. */
  async join(keys: CacheKeys, subscriber: Subscriber, work: Work): Promise<SharedAnswer> {
    const found = this.#requests.get(keys.entry)
    const isOvertaken = found !== undefined && subscriber.isAhead === true && !hasBegun(found.progress)
    const known = isOvertaken ? undefined : found
    const request = known ?? this.#start(keys, subscriber, work)
    if (isOvertaken) request.outcome.then((shared) => endUnsent(found, shared)).catch(() => undefined)
    request.subscribers.add(subscriber)
    subscriber.progress.ofRequest = request.progress
    request.deadline = Math.max(request.deadline, subscriber.deadline)
    try {
      const { isLeader, ...answer } = await Promise.race([request.outcome, rejectOnAbort(subscriber.signal)])
      const isCollapsed = known !== undefined || !isLeader
      return isCollapsed ? { outcome: answer.outcome, isCollapsed } : { ...answer, isCollapsed }
    } finally {
      request.subscribers.delete(subscriber)
      if (subscriber.signal.reason === LOCK_LOST) request.hasLostLock = true
      if (subscriber.member === request.member && !request.isOver) subscriber.progress.goesOn = request.outcome
      if (request.subscribers.size === 0) void this.#endUnlessFollowed(keys, request)
    }
  }

  async #endUnlessFollowed(keys: CacheKeys, request: LocalRequest): Promise<void> {
    while (request.isLed && !request.isOver && request.subscribers.size === 0) {
      // Fails open: where Redis does not answer, followers send a request of their own.
      const deadline = Number(await this.#redis.get(keys.followed).catch(() => null))
      if (deadline === 0) break
      request.deadline = Math.max(request.deadline, deadline)
      await delay(FOLLOWED_RENEW_MS)
    }
    if (request.subscribers.size > 0) return
    // A later call starts another one.
    this.#forget(keys, request)
    abort(request, 'nobody waits for the answer')
  }

  #forget(keys: CacheKeys, request: LocalRequest): void {
    if (this.#requests.get(keys.entry) === request) this.#requests.delete(keys.entry)
  }

  #start(keys: CacheKeys, { member, deadline, isAhead = false }: Subscriber, work: Work): LocalRequest {
    const ending = new AbortController()
    const ended = Promise.withResolvers<Ended>()
    const request: LocalRequest = {
      ...{ member, isLed: false, isOver: false, hasLostLock: false },
      subscribers: new Set(),
      deadline,
      progress: {},
      ending,
      outcome: Promise.race([Promise.resolve().then(() => run()), ended.promise]),
      end: (shared) => {
        ended.resolve(shared)
        abort(request, 'another request brought the answer')
      },
    }
    const run = async (): Promise<Ended> => {
      try {
        const coalesced = { signal: ending.signal, deadline: () => request.deadline, progress: request.progress }
        const onLead = (): void => {
          request.isLed = true
        }
        return await this.#lead(keys, { token: randomUUID(), isAhead, work, onLead }, coalesced)
      } finally {
        request.isOver = true
        this.#forget(keys, request)
      }
    }
    // All subscribers may have left.
    request.outcome.catch(() => undefined)
    this.#requests.set(keys.entry, request)
    return request
  }

  /** Leads, or waits for another process's leader. */
  async #lead(keys: CacheKeys, start: Start, request: CoalescedRequest): Promise<Ended> {
    const { token } = start
    let { isAhead } = start
    const leaders = new Set<string>()
    let renewedAt = Number.NEGATIVE_INFINITY
    while (true) {
      const leader = await this.#redis.set(keys.leader, token, 'PX', LEADER_MS, 'NX', 'GET')
      let isLeader = leader === null || leader === token
      if (leader !== null && !isLeader) leaders.add(leader.replace(BEGUN, ''))
      // The outcome at a follower's deadline depends on how far the leader's request is.
      request.progress.isUnderWay = leader?.endsWith(BEGUN) ?? false
      request.progress.isSent = request.progress.isUnderWay
      if (isAhead && !isLeader && !request.progress.isUnderWay) {
        await this.#redis.set(keys.leader, token, 'PX', LEADER_MS)
        isLeader = true
      }
      isAhead = false
      const outcome = leaders.size === 0 ? undefined : await this.#outcomeOf(keys.outcome, leaders)
      if (outcome) {
        if (isLeader) await releaseLock(this.#redis, keys.leader, tokensOf(token))
        return { outcome, isLeader: false }
      }
      if (isLeader) {
        start.onLead()
        return { ...(await this.#run(keys, start, request)), isLeader: true }
      }
      if (performance.now() - renewedAt >= FOLLOWED_RENEW_MS) {
        renewedAt = performance.now()
        await this.#redis.set(keys.followed, request.deadline(), 'PX', FOLLOWED_MS)
      }
      await delay(FOLLOW_EVERY_MS, undefined, { signal: request.signal })
    }
  }

  async #run(keys: CacheKeys, { token, work }: Start, request: CoalescedRequest): Promise<Answer> {
    const renewing = setInterval(() => {
      const tokens = hasBegun(request.progress) ? tokensOf(token).toReversed() : tokensOf(token)
      extendLock(this.#redis, keys.leader, { tokens, lifeMs: LEADER_MS }).catch(() => undefined)
    }, LEADER_RENEW_MS)
    try {
      const answer = await work(request)
      const { outcome } = answer
      // Followers in other processes judge by the time that they have left, as those of this one do.
      if (isOfOneCall(outcome) && !isCutShort(outcome)) return answer
      const frame = outcomeFrame(outcome, token)
      // Sent together with the end of the lead. Fails open: where Redis takes no writes, followers send requests of their own.
      if (frame.length <= OUTCOME_BYTES_MAX) {
        this.#redis.set(keys.outcome, frame, 'PX', OUTCOME_MS).catch(() => undefined)
      }
      return answer
    } finally {
      clearInterval(renewing)
      await releaseLock(this.#redis, keys.leader, tokensOf(token)).catch(() => undefined)
      // Another call that it names keeps its place, and finds this outcome or sends a request of its own.
      await this.#redis.del(keys.coalesced).catch(() => undefined)
    }
  }

  /** An earlier leader's outcome may be one that is not stored, and not for this call. */
  async #outcomeOf(key: string, leaders: Set<string>): Promise<Outcome | undefined> {
    const frame = await this.#redis.getBuffer(key)
    if (frame === null) return undefined
    const { head, body } = decodeFrame<OutcomeHead>(frame)
    if (!leaders.has(head.leader)) return undefined
    return head.failure ?? { body }
  }
}

function abort({ ending, hasLostLock }: LocalRequest, why: string): void {
  ending.abort(hasLostLock ? LOCK_LOST : new Error(why))
}

function hasBegun({ isUnderWay, lastFailure }: CallProgress): boolean {
  return isUnderWay === true || lastFailure !== undefined
}

/** An answer serves the calls of a request that waits behind it for a permit; a failure leaves them their own try. */
function endUnsent(request: LocalRequest, { outcome }: Ended): void {
  if (!isFailure(outcome) && !hasBegun(request.progress)) request.end({ outcome, isLeader: false })
}

interface OutcomeHead {
  leader: string
  failure?: Failure
}

function outcomeFrame(outcome: Outcome, leader: string): Buffer {
  if (!isFailure(outcome)) return encodeFrame({ leader } satisfies OutcomeHead, outcome.body)
  const { cause: _cause, ...failure } = outcome
  return encodeFrame({ leader, failure } satisfies OutcomeHead, Buffer.alloc(0))
}
