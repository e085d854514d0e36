import type { Cap } from '../../src/caps/cap.ts'
import type { AcquireResult, PermitId } from '../../src/caps/replies.ts'
import { LEASE_MS, PERMIT_AGE_MS_MAX, REPLY_MS, ROUND_TRIP_MS_MAX } from '../../src/caps/timing.ts'
import { SLOW_MS } from '../../src/health/score.ts'
import type { Log } from '../../src/log.ts'
import type { CapBucket } from '../../src/queue/wait-queue-entry.ts'
import { LOCK_LOST } from '../errors/abort-reasons.ts'
import { AttemptError, refusedAttempt } from '../errors/attempt-error.ts'
import type { GrantLedger } from './grant-ledger.ts'
import { type LocalWaiter, LocalWaiters, type PermitRequest, type PermitWait } from './local-waiters.ts'
import { AHEAD_LIFE_MS, PermitsAhead } from './permits-ahead.ts'
import { type Permit, PermitsInUse } from './permits-in-use.ts'
import { POLL_AT_ONCE, POLL_INTERVAL_MS, PollSchedule, pauseUntil } from './poll-schedule.ts'

/**
 * If the cap has room, ended permits are released with the next poll for permits, or after this
 * pause, because nobody waits for them. Milliseconds.
 */
const RELEASE_PAUSE_MS = 10

/**
 * The same, if the cap had room for at least `WIDE_ROOM_MIN` more requests, which then need not
 * wait for these permits. If calls come often, the next poll comes soon after the permits ahead are
 * too old.
 */
const RELEASE_PAUSE_WIDE_MS = AHEAD_LIFE_MS + 100
const WIDE_ROOM_MIN = 32

interface PermitClientDeps {
  slug: string
  bucket: CapBucket
  cap: Cap
  log: Log
  grants: Pick<GrantLedger, 'add'>
  /** Most permits that a poll acquires for calls that come later. */
  aheadMax: number
  /** Whether an operator holds the calls of the upstream: calls that wait go on waiting. */
  isPausedByOperator: () => boolean
  /** How long the upstream usually takes to answer, milliseconds. */
  usualMs: () => number
}

/**
 * Gets permits of one cap for this worker's calls; one poll of Redis serves all that wait.
 * `acquire`, `wake` and released permits make it poll, and Redis says how long to wait after.
 */
export class PermitClient {
  readonly slug: string
  readonly #cap: Cap
  readonly #log: Log
  readonly #bucket: CapBucket
  readonly #grants: PermitClientDeps['grants']
  readonly #isPausedByOperator: PermitClientDeps['isPausedByOperator']
  readonly #usualMs: PermitClientDeps['usualMs']
  readonly #inUse: PermitsInUse
  readonly #ahead: PermitsAhead
  readonly #waiters = new LocalWaiters()
  readonly #polls = new PollSchedule(() => this.#poll())
  /**
   * How much later than the grant the next poll logs its permits, and how much longer these permits
   * may be used. Milliseconds. If the permits of the last poll were too old when they came, this is
   * how long its round trip took, and otherwise 0.
   */
  #logLaterMs = 0
  /** How many more requests the cap had room for at the last poll. */
  room = 0

  constructor({ slug, bucket, cap, log, grants, aheadMax, isPausedByOperator, usualMs }: PermitClientDeps) {
    this.slug = slug
    this.#cap = cap
    this.#log = log.child({ cap: cap.name })
    this.#inUse = new PermitsInUse(cap, this.#log)
    this.#bucket = bucket
    this.#grants = grants
    this.#ahead = new PermitsAhead(aheadMax, (unused) => this.#giveBack(unused))
    this.#isPausedByOperator = isPausedByOperator
    this.#usualMs = usualMs
  }

  /** @throws AttemptError if the permit would come too late; the refusal; the signal's reason */
  acquire(request: PermitRequest, { remainingMs, signal, refusal }: PermitWait): Promise<Permit> {
    if (signal.aborted) return Promise.reject(signal.reason)
    const refused = refusal?.()
    if (refused) return Promise.reject(refused)
    const ahead = this.#takeAhead(request, remainingMs)
    if (ahead) return Promise.resolve(ahead)
    const { promise, resolve, reject } = Promise.withResolvers<Permit>()
    const onAbort = (): void => this.#reject(waiter, signal.reason)
    const state = { hasWaited: false, resolve, reject, onAbort }
    const waiter: LocalWaiter = { ...request, remainingMs, signal, ...(refusal && { refusal }), ...state }
    signal.addEventListener('abort', onAbort)
    this.#waiters.add(waiter)
    this.#polls.pollSoon()
    return promise
  }

  /**
   * A permit that was acquired ahead, for a call that has no place. Calls that wait come first,
   * even if they wait for an operator.
   */
  #takeAhead({ tag }: PermitRequest, remainingMs: () => number): Permit | undefined {
    if (tag !== undefined) return undefined
    this.#ahead.noteCall()
    if (this.#waiters.size > 0 || this.#isPausedByOperator() || !this.#isAnsweredInTime(remainingMs)) return undefined
    const ahead = this.#ahead.take()
    return ahead && this.#handOut(ahead.id, { usableUntil: ahead.usableUntil, hasWaited: false })
  }

  /** A permit for a request, which holds it from now on. `usableUntil`: monotonic clock, ms. */
  #handOut(id: PermitId, { usableUntil, hasWaited }: { usableUntil: number; hasWaited: boolean }): Permit {
    this.#inUse.hold(id)
    return {
      id,
      hasWaited,
      isFresh: () => performance.now() <= usableUntil,
      release: (tookMs) => {
        this.#inUse.release(id, tookMs)
        this.#scheduleRelease(1)
      },
      giveBack: () => this.#giveBack([id]),
    }
  }

  wake(member: string): void {
    if (this.#waiters.get(member)) this.#polls.pollSoon()
  }

  /**
   * Call it when the health of the upstream has changed. Another worker may have found that the
   * upstream is limited, so permits ahead are not used.
   */
  followHealth(): void {
    this.#ahead.giveBack()
    for (const waiter of this.#waiters.all) {
      const refusal = waiter.refusal?.()
      if (refusal) this.#reject(waiter, refusal)
    }
  }

  #giveBack(unused: PermitId[]): void {
    this.#inUse.giveBack(unused)
    if (unused.length > 0) this.#scheduleRelease(unused.length)
  }

  /** So many permits have just ended. */
  #scheduleRelease(count: number): void {
    if (this.room === 0 || this.#waiters.size > 0) this.#polls.pollSoon()
    // The first permits since the last poll set the timer, and later permits go with them.
    else if (!this.#polls.isPolling && this.#inUse.releasedCount === count) this.#polls.pollIn(this.#releasePauseMs())
  }

  #releasePauseMs(): number {
    return this.room >= WIDE_ROOM_MIN ? RELEASE_PAUSE_WIDE_MS : RELEASE_PAUSE_MS
  }

  /**
   * Releases permits that ended, and gives back permits ahead.
   * @throws what Redis throws
   */
  async close(): Promise<void> {
    this.#polls.stop()
    this.#inUse.giveBack(this.#ahead.drain())
    if (this.#inUse.releasedCount > 0) await this.#cap.release(this.#inUse.drainReleased())
  }

  async #poll(): Promise<void> {
    let pauseMs: number | undefined = POLL_INTERVAL_MS
    try {
      pauseMs = await this.#sendPoll()
    } catch (error) {
      this.#log.warn({ err: error }, 'failed to exchange permits with Redis')
    }
    if (this.#waiters.size === 0) pauseMs = this.#inUse.releasedCount > 0 ? this.#releasePauseMs() : undefined
    // In the same step, so that a permit which ends right after it is not left out.
    this.#polls.end(pauseMs)
  }

  /**
   * Sends what was released, and asks for permits.
   *
   * @returns how long waiters wait for the next poll, milliseconds
   */
  async #sendPoll(): Promise<number> {
    const waiters = this.#isPausedByOperator() ? [] : this.#waiters.first()
    const { releasedCount } = this.#inUse
    const released = this.#inUse.drainReleased()
    if (waiters.length === 0) {
      // The cap has no room if calls of other workers wait.
      if (releasedCount > 0 && (await this.#cap.release(released)).isWaitedFor) {
        this.room = 0
        this.#ahead.giveBack()
      }
      return POLL_INTERVAL_MS
    }
    const polledAt = performance.now()
    const rules = this.#cap.rules()
    const logLaterMs = this.#logLaterMs
    const aheadMax = this.#ahead.wanted(waiters.length)
    const result = await this.#cap.acquire({ waiters, released, leaseMs: LEASE_MS, logLaterMs, aheadMax })
    const tookMs = Math.ceil(performance.now() - polledAt)
    this.#logLaterMs = tookMs > PERMIT_AGE_MS_MAX ? Math.min(tookMs, ROUND_TRIP_MS_MAX) : 0
    const usableUntil = polledAt + PERMIT_AGE_MS_MAX + logLaterMs
    const mayBeUsed = (): boolean => polledAt > this.#cap.limitedAt && rules === this.#cap.rules()
    this.#ahead.keep(result.ahead, { usableUntil, mayBeUsed })
    if (this.#answerWaiters(result, { usableUntil, waiters })) return POLL_AT_ONCE
    this.#ahead.giveBack()
    return pauseUntil(result.retryInMs)
  }

  /** @returns whether no waiter of the poll goes on waiting */
  #answerWaiters(
    { granted, joined, refused, room }: AcquireResult,
    { usableUntil, waiters }: { usableUntil: number; waiters: LocalWaiter[] },
  ): boolean {
    this.#grants.add({ slug: this.slug, bucket: this.#bucket, caps: this.#cap.rules(), granted: granted.size })
    for (const [member, id] of granted) this.#grant(member, id, usableUntil)
    for (const waiter of waiters) {
      const { member } = waiter
      const refusal = refused.get(member)
      if (refusal) this.#stopWaiting(waiter)?.reject(refusedAttempt(refusal, refusal.hadPlace ? 'unsent' : 'refused'))
      else if (!granted.has(member)) this.#letWait(waiter, joined.get(member))
    }
    this.room = room
    return granted.size + refused.size === waiters.length
  }

  /** @param tag of the place that the waiter got by this poll */
  #letWait(waiter: LocalWaiter, tag: number | undefined): void {
    waiter.hasWaited = true
    if (this.#waiters.get(waiter.member) !== waiter) {
      if (waiter.signal.reason !== LOCK_LOST) this.#leave(waiter)
    } else if (tag !== undefined) {
      this.#waiters.remove(waiter)
      waiter.tag = tag
      this.#waiters.add(waiter)
    }
  }

  /** @returns the waiter; undefined if its caller left during the poll */
  #stopWaiting(waiter: LocalWaiter): LocalWaiter | undefined {
    waiter.signal.removeEventListener('abort', waiter.onAbort)
    return this.#waiters.remove(waiter) ? waiter : undefined
  }

  /**
   * The waiter stops waiting, and leaves the queue. After a lost lock its place belongs to the run
   * that has the job now.
   */
  #reject(waiter: LocalWaiter, reason: unknown): void {
    if (this.#stopWaiting(waiter) && reason !== LOCK_LOST) this.#leave(waiter)
    waiter.reject(reason)
  }

  #leave(waiter: LocalWaiter): void {
    this.#cap
      .leaveWaitQueue(waiter)
      .catch((error) => this.#log.debug({ err: error, callId: waiter.id }, 'failed to leave the wait queue'))
  }

  #grant(member: string, id: PermitId, usableUntil: number): void {
    const waiter = this.#waiters.get(member)
    if (!waiter) {
      this.#giveBack([id])
      return
    }
    this.#stopWaiting(waiter)
    if (!this.#isAnsweredInTime(waiter.remainingMs)) {
      this.#giveBack([id])
      void this.#rejectUnanswerable(waiter)
      return
    }
    waiter.resolve(this.#handOut(id, { usableUntil, hasWaited: waiter.hasWaited }))
  }

  /**
   * Whether an answer can come before the deadline. If not, the request would only use up the cap.
   */
  #isAnsweredInTime(remainingMs: () => number): boolean {
    const leftMs = remainingMs() - REPLY_MS
    return leftMs >= SLOW_MS || leftMs >= this.#usualMs()
  }

  /**
   * Rejects a call whose permit came too late; the next waiter gets the permit. If the call waited
   * for the cap, the cap is the reason, and otherwise the gateway was slow.
   */
  async #rejectUnanswerable({ hasWaited, tag, reject }: LocalWaiter): Promise<void> {
    if (!hasWaited) {
      reject(new AttemptError('DEADLINE_EXCEEDED', { isRetryable: false }))
      return
    }
    const { nextSlotMs } = await this.#cap.read().catch(() => ({ nextSlotMs: POLL_INTERVAL_MS }))
    const refusal = { reason: 'cap' as const, retryAfterMs: Math.max(1, nextSlotMs) }
    reject(refusedAttempt(refusal, tag === undefined ? 'refused' : 'unsent'))
  }
}
