import { type AcquireResult, type Cap, NO_PLACE, type PermitId } from '../../src/caps/cap.ts'
import { LEASE_MS, PERMIT_AGE_MS_MAX, REPLY_MS, ROUND_TRIP_MS_MAX } from '../../src/caps/timing.ts'
import { SLOW_MS } from '../../src/health/score.ts'
import type { Log } from '../../src/log.ts'
import { AttemptError } from '../upstream/attempt-error.ts'
import { firstWaiters } from './first-waiters.ts'
import { HeldPermits } from './held-permits.ts'
import { acquireOrJoin, type PermitRequest, type PermitWaiter, PlaceNeededError, tooLateError } from './late-join.ts'

/** A poll also keeps the waiters' entries alive. */
const POLL_INTERVAL_MS = 500

/** Poll interval while another request must end first, for a lost wake-up or an expired lease. Milliseconds. */
const FALLBACK_POLL_MS = 200

/** Shortest pause between polls, so that one serves several slots of a rate. Milliseconds. */
const POLL_MS_MIN = 5

/** How long ended permits wait for a poll that asks for others, where the cap had room: nobody waits for them. Milliseconds. */
const RELEASE_PAUSE_MS = 10

export interface Permit {
  id: PermitId
  /** The first poll did not bring it. */
  hasWaited: boolean
  /** Checked right before the first byte is written. */
  isFresh: () => boolean
  release: (tookMs: number) => void
  /** Instead of `release`, when nothing was sent. */
  releaseUnused: () => void
}

interface LocalWaiter extends PermitWaiter {
  hasWaited: boolean
  remainingMs: () => number
  resolve: (permit: Permit) => void
  reject: (error: unknown) => void
  signal: AbortSignal
  onAbort: () => void
}

export interface PermitClientDeps {
  cap: Cap
  log: Log
  onGranted: (granted: number) => void
  /** Whether an operator holds the calls of the upstream: those that wait go on waiting. */
  isHeld: () => boolean
  /** How long the upstream usually takes to answer, milliseconds. */
  usualMs: () => number
  /** Calls back when the health of the upstream has changed. @returns how to stop */
  onHealthChange: (listener: () => void) => () => void
}

/**
 * Gets permits of one cap for this worker's calls; one poll of Redis serves all that wait. `acquire`, `wake` and released permits
 * make it poll, and Redis says how long to wait after.
 */
export class PermitClient {
  readonly #cap: Cap
  readonly #log: Log
  readonly #onGranted: PermitClientDeps['onGranted']
  readonly #isHeld: PermitClientDeps['isHeld']
  readonly #usualMs: PermitClientDeps['usualMs']
  readonly #onHealthChange: PermitClientDeps['onHealthChange']
  #stopListening: (() => void) | undefined
  readonly #held: HeldPermits
  readonly #waiters = new Map<string, LocalWaiter>()
  readonly #waitersByTag: LocalWaiter[] = []
  #isPolling = false
  #pollAgain = false
  #timer: NodeJS.Timeout | undefined
  /** The last round trip, milliseconds, where it took so long that a permit was too old when it came; else 0. */
  #logLaterMs = 0
  /** How many more requests the cap had room for at the last poll. */
  room = 0

  constructor({ cap, log, onGranted, isHeld, usualMs, onHealthChange }: PermitClientDeps) {
    this.#cap = cap
    this.#log = log.child({ cap: cap.name })
    this.#held = new HeldPermits(cap, this.#log)
    this.#onGranted = onGranted
    this.#isHeld = isHeld
    this.#usualMs = usualMs
    this.#onHealthChange = onHealthChange
  }

  /** @throws AttemptError where the permit would come too late; the signal's reason */
  acquire(request: PermitRequest, remainingMs: () => number, signal: AbortSignal): Promise<Permit> {
    const deps = { cap: this.#cap, log: this.#log }
    return acquireOrJoin(deps, request, (waiter) => this.#wait(waiter, remainingMs, signal))
  }

  #wait(request: PermitWaiter, remainingMs: () => number, signal: AbortSignal): Promise<Permit> {
    if (signal.aborted) return Promise.reject(signal.reason)
    // It may have changed while the call joined the wait queue.
    const refusal = request.refusalByHealth?.()
    if (refusal) return Promise.reject(refusal)
    const { promise, resolve, reject } = Promise.withResolvers<Permit>()
    const onAbort = (): void => {
      this.#remove(waiter)
      reject(signal.reason)
    }
    const waiter: LocalWaiter = { hasWaited: false, ...request, remainingMs, resolve, reject, signal, onAbort }
    signal.addEventListener('abort', onAbort)
    this.#insert(waiter)
    this.#schedulePoll()
    return promise
  }

  wake(member: string): void {
    if (this.#waiters.has(member)) this.#schedulePoll()
  }

  #insert(waiter: LocalWaiter): void {
    const known = this.#waiters.get(waiter.member)
    // The same call runs here again: its earlier run gets no permit any more and waits only for its own end.
    if (known) this.#takeOff(known)
    this.#waiters.set(waiter.member, waiter)
    const index = this.#waitersByTag.findLastIndex(({ tag }) => tag <= waiter.tag) + 1
    this.#waitersByTag.splice(index, 0, waiter)
    this.#stopListening ??= this.#onHealthChange(() => this.#rejectByHealth())
  }

  #remove(waiter: LocalWaiter): void {
    waiter.signal.removeEventListener('abort', waiter.onAbort)
    this.#takeOff(waiter)
    if (this.#waiters.size > 0) return
    this.#stopListening?.()
    this.#stopListening = undefined
  }

  #takeOff(waiter: LocalWaiter): void {
    if (this.#waiters.get(waiter.member) === waiter) this.#waiters.delete(waiter.member)
    const index = this.#waitersByTag.indexOf(waiter)
    if (index >= 0) this.#waitersByTag.splice(index, 1)
  }

  #rejectByHealth(): void {
    for (const { member, refusalByHealth } of [...this.#waitersByTag]) {
      const refusal = refusalByHealth?.()
      if (refusal) this.#reject(member, refusal)
    }
  }

  #schedulePoll(): void {
    clearTimeout(this.#timer)
    if (this.#isPolling) {
      this.#pollAgain = true
      return
    }
    this.#isPolling = true
    // Waiters and released permits of one tick go into one poll.
    setImmediate(() => this.#poll())
  }

  #scheduleRelease(): void {
    if (this.room === 0 || this.#waiters.size > 0) this.#schedulePoll()
    else if (!this.#isPolling && this.#held.releasedCount === 1) this.#pollIn(RELEASE_PAUSE_MS)
  }

  #pollIn(pauseMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#schedulePoll(), pauseMs)
  }

  /** Sends what was released. @throws what Redis throws */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    const released = this.#held.drainReleased()
    if (released.ids.length > 0) await this.#cap.release(released)
  }

  #poll(): void {
    this.#exchange()
      .catch((error) => {
        this.#log.warn({ err: error }, 'failed to exchange permits with Redis')
        return POLL_INTERVAL_MS
      })
      .then((pauseMs) => {
        this.#isPolling = false
        if (this.#pollAgain) this.#schedulePoll()
        else if (this.#waiters.size > 0) this.#pollIn(pauseMs)
        else if (this.#held.releasedCount > 0) this.#pollIn(RELEASE_PAUSE_MS)
      })
  }

  /** Sends what was released, and asks for permits. @returns milliseconds until the next poll */
  async #exchange(): Promise<number> {
    this.#pollAgain = false
    const waiters = this.#isHeld() ? [] : firstWaiters(this.#waitersByTag)
    const released = this.#held.drainReleased()
    if (waiters.length === 0) {
      if (released.ids.length > 0 && (await this.#cap.release(released)).isWaitedFor) this.room = 0
      return POLL_INTERVAL_MS
    }
    const polledAt = performance.now()
    const logLaterMs = this.#logLaterMs
    const result = await this.#cap.acquire({ waiters, released, leaseMs: LEASE_MS, logLaterMs })
    const tookMs = Math.ceil(performance.now() - polledAt)
    this.#logLaterMs = tookMs > PERMIT_AGE_MS_MAX ? Math.min(tookMs, ROUND_TRIP_MS_MAX) : 0
    const areAllSettled = this.#settle(result, { usableUntil: polledAt + PERMIT_AGE_MS_MAX + logLaterMs, waiters })
    return areAllSettled ? 0 : pauseUntil(result.retryInMs)
  }

  /** @returns whether no waiter of the poll goes on waiting */
  #settle(
    { granted, evicted, mustJoin, room, closedForMs, retryInMs }: AcquireResult,
    { usableUntil, waiters }: { usableUntil: number; waiters: LocalWaiter[] },
  ): boolean {
    this.#onGranted(granted.size)
    for (const [member, id] of granted) this.#grant(member, id, usableUntil)
    // These had places that others took, so their units of the minute stay spent.
    for (const [member, refusal] of evicted) this.#reject(member, tooLateError(refusal, { isRefused: false }))
    for (const member of mustJoin) this.#reject(member, new PlaceNeededError('the call has to wait in the queue'))
    for (const waiter of waiters) waiter.hasWaited = true
    this.room = room
    if (closedForMs > 0) this.#rejectTooLate(closedForMs)
    if (granted.size + evicted.size + mustJoin.length === waiters.length) return true
    this.#rejectWithoutPlace(waiters, { reason: closedForMs > 0 ? 'closed' : 'cap', retryAfterMs: retryInMs })
    return false
  }

  #reject(member: string, reason: Error): void {
    const waiter = this.#waiters.get(member)
    // The caller left during the poll.
    if (!waiter) return
    this.#remove(waiter)
    waiter.reject(reason)
  }

  /** The queue evicts only calls that have a place; these may have none. `retryAfterMs`: the earliest that one of them may be sent. */
  #rejectWithoutPlace(waiters: LocalWaiter[], refusal: { reason: 'cap' | 'closed'; retryAfterMs: number }): void {
    for (const { member, mayLackPlace, remainingMs } of waiters) {
      if (!mayLackPlace || remainingMs() >= refusal.retryAfterMs) continue
      this.#reject(member, tooLateError(refusal, { isRefused: true }))
    }
  }

  #rejectTooLate(closedForMs: number): void {
    for (const { member, tag, mayLackPlace = false, remainingMs } of [...this.#waitersByTag]) {
      if (remainingMs() >= closedForMs) continue
      const hadPlace = tag !== NO_PLACE && !mayLackPlace
      this.#reject(member, tooLateError({ reason: 'closed', retryAfterMs: closedForMs }, { isRefused: !hadPlace }))
    }
  }

  #grant(member: string, id: PermitId, usableUntil: number): void {
    const waiter = this.#waiters.get(member)
    if (!waiter) {
      this.#releaseUnused(id)
      return
    }
    this.#remove(waiter)
    if (!this.#isAnsweredInTime(waiter)) {
      this.#releaseUnused(id)
      void this.#rejectUnanswerable(waiter)
      return
    }
    this.#held.add(id)
    waiter.resolve({
      id,
      hasWaited: waiter.hasWaited,
      isFresh: () => performance.now() <= usableUntil,
      release: (tookMs) => {
        this.#held.release(id, tookMs)
        this.#scheduleRelease()
      },
      releaseUnused: () => this.#releaseUnused(id),
    })
  }

  /** A request that starts later than this would only use up the cap: its caller reads a timeout. */
  #isAnsweredInTime({ remainingMs }: LocalWaiter): boolean {
    const leftMs = remainingMs() - REPLY_MS
    return leftMs >= SLOW_MS || leftMs >= this.#usualMs()
  }

  /** The next waiter has its permit. What used up its time was the wait for the cap, or else ours. */
  async #rejectUnanswerable({ hasWaited, tag, mayLackPlace = false, reject }: LocalWaiter): Promise<void> {
    if (!hasWaited) {
      reject(new AttemptError('DEADLINE_EXCEEDED', { isRetryable: false }))
      return
    }
    const hadPlace = tag !== NO_PLACE && !mayLackPlace
    const { nextSlotMs } = await this.#cap.read().catch(() => ({ nextSlotMs: POLL_INTERVAL_MS }))
    const retryAfterMs = Math.max(1, nextSlotMs)
    reject(tooLateError({ reason: 'cap', retryAfterMs }, { isRefused: !hadPlace }))
  }

  #releaseUnused(id: PermitId): void {
    this.#held.releaseUnused(id)
    if (this.#waiters.size > 0) this.#schedulePoll()
  }
}

function pauseUntil(retryInMs: number): number {
  if (retryInMs <= 0) return FALLBACK_POLL_MS
  return Math.min(Math.max(retryInMs, POLL_MS_MIN), POLL_INTERVAL_MS)
}
