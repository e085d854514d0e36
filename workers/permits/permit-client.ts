import { type CapScope, PERMIT_AGE_MS_MAX, SHARED_SCOPE } from '../../src/caps/cap-keys.ts'
import {
  beginCap,
  type EndedPermits,
  giveBackPermit,
  type PermitId,
  releasePermits,
  renewPermits,
  takePermits,
} from '../../src/caps/permit.ts'
import { memorySince, restoreMemory } from '../../src/caps/redis-memory.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import type { Db } from '../../src/db/database.ts'
import type { Log } from '../../src/log.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { AttemptError } from '../upstream/attempt-error.ts'
import type { GrantLedger } from './grant-ledger.ts'

/**
 * How long a permit's lease lasts without being renewed, and how often it is. A killed worker's leases hold a place at
 * the upstream no longer; a worker that stalls for as long has lost its jobs too. Milliseconds.
 */
const LEASE_MS = 6_000
const RENEW_EVERY_MS = 1_500

/** Longest pause between two askings, milliseconds: by asking, a parked call also says that its worker lives. */
const ASK_EVERY_MS = 500

/**
 * Pause while a request elsewhere must end first. Its end is told, so this is for what is not: a lease that ran out, a
 * message that got lost. Milliseconds.
 */
const ASK_UNTOLD_MS = 200

/** Shortest pause where the rates say when the next may go: several slots at once are one question. Milliseconds. */
const ASK_MS_LEAST = 5

/**
 * Calls asked for in one question, those with the least tags; the others' turn is later in any case. Of one account no
 * more than so many: it may be one that has had its share, and would hide the others.
 */
const CALLS_PER_ASKING = 64
const CALLS_PER_ACCOUNT = 16

/** Leave to send one request to the upstream, now. */
export interface Permit {
  id: PermitId
  /** Whether it is still fresh enough to be used; ask right before the first byte is written. */
  isFresh: () => boolean
  /** Ends it after the request. */
  release: (tookMs: number) => void
  /** Ends it when nothing was sent. */
  giveBack: () => void
}

export interface PermitRequest {
  /** The call as the line knows it. */
  member: string
  /** Its fair tag. */
  tag: number
}

interface Asking extends PermitRequest {
  remainingMs: () => number
  resolve: (permit: Permit) => void
  reject: (error: unknown) => void
}

/** What every desk works with. */
export interface PermitClientDeps {
  redis: RedisConnection
  db: Db
  log: Log
  grants: GrantLedger
}

/** Where this worker's calls to one upstream, under one cap, ask for permits; one question to Redis serves them all. */
export class PermitClient {
  readonly #redis: RedisConnection
  readonly #db: Db
  readonly #log: Log
  readonly #grants: GrantLedger
  #api: Api
  readonly #scope: CapScope
  /** Permits under which a request is on its way. */
  readonly #held = new Set<PermitId>()
  #renewing: NodeJS.Timeout | undefined
  readonly #asking = new Map<string, Asking>()
  /** The same, by tag. */
  readonly #inOrder: Asking[] = []
  #ended: { id: PermitId; tookMs: number }[] = []
  #isAsking = false
  #isAskedAgain = false
  #timer: NodeJS.Timeout | undefined

  constructor(sources: PermitClientDeps, api: Api, scope: CapScope) {
    this.#redis = sources.redis
    this.#db = sources.db
    this.#log = sources.log
    this.#grants = sources.grants
    this.#api = api
    this.#scope = scope
  }

  /** The API as it is set now: operators change caps while workers run. */
  use(api: Api): void {
    this.#api = api
  }

  /**
   * Waits for a permit; ends when the signal does, with its reason.
   *
   * @throws AttemptError UPSTREAM_RATE_LIMITED when the upstream takes nothing more in the time that remains
   */
  acquire(request: PermitRequest, remainingMs: () => number, signal: AbortSignal): Promise<Permit> {
    if (signal.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#leave(asking)
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      const settled = (): void => signal.removeEventListener('abort', onAbort)
      const asking: Asking = {
        ...request,
        remainingMs,
        resolve: (permit) => {
          settled()
          resolve(permit)
        },
        reject: (error) => {
          settled()
          reject(error)
        },
      }
      this.#enter(asking)
      this.#ask()
    })
  }

  #enter(asking: Asking): void {
    const known = this.#asking.get(asking.member)
    if (known) this.#leave(known)
    this.#asking.set(asking.member, asking)
    const place = this.#inOrder.findLastIndex(({ tag }) => tag <= asking.tag) + 1
    this.#inOrder.splice(place, 0, asking)
  }

  #leave(asking: Asking): void {
    if (this.#asking.get(asking.member) === asking) this.#asking.delete(asking.member)
    const place = this.#inOrder.indexOf(asking)
    if (place >= 0) this.#inOrder.splice(place, 1)
  }

  /** The call's turn may have come. */
  turn(member: string): void {
    if (this.#asking.has(member)) this.#ask()
  }

  #ask(): void {
    clearTimeout(this.#timer)
    if (this.#isAsking) {
      this.#isAskedAgain = true
      return
    }
    this.#isAsking = true
    this.#askOnce()
      .catch((error) => {
        this.#log.warn({ err: error, slug: this.#api.slug }, 'permits could not be asked for')
        return ASK_EVERY_MS
      })
      .then((pauseMs) => {
        this.#isAsking = false
        if (this.#isAskedAgain) this.#ask()
        else if (this.#asking.size > 0) this.#timer = setTimeout(() => this.#ask(), pauseMs)
      })
  }

  /** @returns when to ask again, milliseconds */
  async #askOnce(): Promise<number> {
    this.#isAskedAgain = false
    const calls = this.#firstInOrder()
    const ended = this.#takeEnded()
    const { slug } = this.#api
    const caps = this.#scope === SHARED_SCOPE ? this.#api.caps : this.#api.keyed.caps
    if (calls.length === 0) {
      if (ended.ids.length > 0) await releasePermits(this.#redis, slug, this.#scope, ended)
      return ASK_EVERY_MS
    }
    const askedAt = performance.now()
    const answer = await takePermits(this.#redis, slug, this.#scope, caps, calls, ended, LEASE_MS)
    if (answer === 'unrestored') {
      await restoreMemory(this.#redis, this.#db, slug, this.#scope, caps)
      return 0
    }
    if (answer === 'unknown') {
      await beginCap(this.#redis, slug, this.#scope, await memorySince(this.#redis, this.#db))
      return 0
    }
    this.#grants.add(slug, this.#scope, caps, answer.granted.size)
    for (const [member, id] of answer.granted) this.#grant(member, id, askedAt)
    if (answer.closedMs > 0) this.#refuseThoseTooLate(answer.closedMs)
    if (answer.granted.size === calls.length) return 0
    if (answer.waitMs <= 0) return ASK_UNTOLD_MS
    return Math.min(Math.max(answer.waitMs, ASK_MS_LEAST), ASK_EVERY_MS)
  }

  #firstInOrder(): Asking[] {
    if (this.#inOrder.length <= CALLS_PER_ACCOUNT) return [...this.#inOrder]
    const first: Asking[] = []
    const counts = new Map<string, number>()
    for (const asking of this.#inOrder) {
      const account = asking.member.slice(0, asking.member.indexOf('|'))
      const count = counts.get(account) ?? 0
      if (count >= CALLS_PER_ACCOUNT) continue
      counts.set(account, count + 1)
      first.push(asking)
      if (first.length === CALLS_PER_ASKING) break
    }
    return first
  }

  /** The upstream has closed itself: who cannot wait that long is told now, not at its deadline. */
  #refuseThoseTooLate(closedMs: number): void {
    for (const asking of [...this.#inOrder]) {
      if (asking.remainingMs() >= closedMs) continue
      this.#leave(asking)
      asking.reject(new AttemptError('UPSTREAM_RATE_LIMITED', false, undefined, closedMs))
    }
  }

  /** What ended goes along with the next question; a lost one ends by its lease. */
  #takeEnded(): EndedPermits {
    const ended = this.#ended
    this.#ended = []
    const total = ended.reduce((sum, { tookMs }) => sum + tookMs, 0)
    return { ids: ended.map(({ id }) => id), meanMs: total / Math.max(1, ended.length) }
  }

  #grant(member: string, id: PermitId, askedAt: number): void {
    const asking = this.#asking.get(member)
    // Its caller left while we asked.
    if (!asking) {
      this.#giveBack(id)
      return
    }
    this.#leave(asking)
    this.#hold(id)
    asking.resolve({
      id,
      // The grant was made after we asked: its true age is at most this.
      isFresh: () => performance.now() - askedAt <= PERMIT_AGE_MS_MAX,
      release: (tookMs) => {
        this.#held.delete(id)
        this.#ended.push({ id, tookMs })
        this.#ask()
      },
      giveBack: () => this.#giveBack(id),
    })
  }

  #hold(id: PermitId): void {
    this.#held.add(id)
    this.#renewing ??= setInterval(() => this.#renew(), RENEW_EVERY_MS)
  }

  #renew(): void {
    if (this.#held.size === 0) {
      clearInterval(this.#renewing)
      this.#renewing = undefined
      return
    }
    renewPermits(this.#redis, this.#api.slug, this.#scope, [...this.#held], LEASE_MS).catch((error) =>
      this.#log.warn({ err: error, slug: this.#api.slug }, 'leases not renewed'),
    )
  }

  #giveBack(id: PermitId): void {
    this.#held.delete(id)
    giveBackPermit(this.#redis, this.#api.slug, this.#scope, id).catch((error) =>
      this.#log.warn({ err: error, slug: this.#api.slug }, 'unused permit not given back; it counts as used'),
    )
    if (this.#asking.size > 0) this.#ask()
  }
}
