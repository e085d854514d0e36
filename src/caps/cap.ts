import { randomBytes, randomUUID } from 'node:crypto'
import { Batcher } from '../async/batcher.ts'
import type { Caps } from '../catalog/upstream.ts'
import type { Db } from '../db/database.ts'
import { GatewayError } from '../errors.ts'
import { type CapBucket, memberOf, type WaitQueueEntry } from '../queue/wait-queue-entry.ts'
import { redisNow } from '../redis/clock.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { capKeys } from '../redis/keys.ts'
import type { Script } from '../redis/script.ts'
import { readPastGrants, readRememberedSince } from './cold-start.ts'
import {
  type AcquireResult,
  type CapState,
  type PermitId,
  type QueueAdmission,
  type QueueRefusal,
  readAcquired,
  readJoined,
  readState,
} from './replies.ts'
import { scripts } from './scripts.ts'
import { WINDOW_MARGIN_MS } from './timing.ts'

/** A call that waits for a permit, and how it joins the queue if it has no place yet. */
export interface Waiter extends Pick<WaitQueueEntry, 'weight' | 'coalescedKey'> {
  member: string
  /** The tag of a call that has, or had, a place and keeps its order. The lowest tag goes first. */
  tag?: number | undefined
  /** Until when a permit is useful, in the time of Redis, milliseconds. */
  deadline: number
}

/** Permits that have ended. */
export interface ReleasedPermits {
  /** Permits whose requests have ended. */
  ids: PermitId[]
  /** Mean duration of the requests under `ids`. */
  meanMs: number
  /** Permits under which nothing was sent. They do not count. */
  unused?: PermitId[]
}

/** What the upstream says about its own limiter. */
export interface UpstreamLimit {
  closedForMs?: number | undefined
  remaining?: { requests: number; resetMs: number } | undefined
  /** Permit of the request whose response said it. */
  observedBy: PermitId
}

export interface CapDeps {
  redis: RedisConnection
  db: Db
  /** Clock of the scripts, for tests; absent: the clock of Redis. Milliseconds. */
  now?: () => number
}

/**
 * Most calls that are queued in one step. If the queue must be planned for each of them, Redis
 * serves nobody else meanwhile.
 */
const JOINED_TOGETHER_MAX = 16

interface JoinRequest {
  call: WaitQueueEntry
  deadline: number
}

/** Number of a poll's keys before the keys of coalesced calls. */
const POLL_KEYS = 11

/** Tries: initialise and back-fill, each once more if Redis loses its memory again meanwhile. */
const RESTORE_TRIES_MAX = 4

/**
 * The limit of one upstream on concurrency and rates, for one bucket, over all processes. If Redis
 * lost its past, the cap stays closed for a while and restores it from Postgres.
 * @throws RedisError, or GatewayError DEPENDENCY_UNAVAILABLE without its past: without Redis
 *   nothing is granted or queued
 */
export class Cap {
  readonly name: string
  readonly #deps: CapDeps
  readonly #slug: string
  readonly #bucket: CapBucket
  readonly #keys: string[]
  /** A function, because operators change caps while processes run. */
  readonly rules: () => Caps
  readonly #pollKey: string
  /**
   * Makes the ids of polls and their permits unique, because Redis may lose its last writes and
   * count the same numbers again.
   */
  readonly #pollPrefix = randomBytes(6).toString('base64url')
  #polls = 0
  /**
   * When this process last learned what the upstream says about its limiter, by the monotonic
   * clock, milliseconds.
   */
  limitedAt = Number.NEGATIVE_INFINITY
  readonly #joins: Batcher<JoinRequest, QueueAdmission | QueueRefusal>

  constructor(deps: CapDeps, { slug, bucket }: { slug: string; bucket: CapBucket }, rules: () => Caps) {
    this.#deps = deps
    this.#slug = slug
    this.#bucket = bucket
    this.rules = rules
    this.#keys = capKeys.all(slug, bucket)
    this.#pollKey = capKeys.poll(slug, bucket, randomUUID())
    this.name = capKeys.of(slug, bucket, 'state')
    this.#joins = new Batcher(this.#join.bind(this), { itemsMax: JOINED_TOGETHER_MAX })
  }

  /**
   * Ends permits, and acquires new permits for all waiters of this worker, in one step. The log
   * counts them as granted `logLaterMs` from now, because a worker with a slow connection to Redis
   * sends its requests that much later. `aheadMax`: so many permits more, for calls that come
   * later, if nothing waits and the cap has room for many requests.
   */
  async acquire({
    waiters,
    released,
    leaseMs,
    logLaterMs = 0,
    aheadMax = 0,
  }: {
    waiters: Waiter[]
    released: ReleasedPermits
    leaseMs: number
    logLaterMs?: number
    aheadMax?: number
  }): Promise<AcquireResult> {
    this.#polls += 1
    const poll = `${this.#pollPrefix}-${this.#polls}`
    const keys = [...this.#keys, this.#pollKey]
    const { ids, meanMs, unused = [] } = released
    const counts = [ids.length, unused.length, waiters.length]
    const values = [leaseMs, meanMs.toFixed(1), ...counts, logLaterMs, aheadMax, poll, ...ids, ...unused]
    for (const { member, tag = '', weight, deadline, coalescedKey } of waiters) {
      values.push(member, tag, weight, deadline, coalescedKey === undefined ? 0 : keys.push(coalescedKey) - POLL_KEYS)
    }
    return readAcquired(await this.#runInitialised(scripts.acquire, keys, values))
  }

  /** Ends permits while no call of this worker waits for a permit. */
  async release({ ids = [], meanMs = 0, unused = [] }: Partial<ReleasedPermits>): Promise<{ isWaitedFor: boolean }> {
    const values = [meanMs.toFixed(1), ids.length, ...ids, ...unused]
    return { isWaitedFor: (await this.#run(scripts.release, this.#keys, values)) === 1 }
  }

  /** @returns the number of leases that still existed */
  async renew(permits: PermitId[], leaseMs: number): Promise<number> {
    return Number(await this.#run(scripts.renew, this.#keys, [leaseMs, ...permits]))
  }

  /** Applies what the upstream itself says to the cap, for all workers at once. */
  async applyUpstreamLimit({ closedForMs = 0, remaining, observedBy }: UpstreamLimit): Promise<void> {
    this.limitedAt = performance.now()
    const left = [remaining?.requests ?? '', Math.ceil(remaining?.resetMs ?? 0)]
    const values = [...this.#ruleArguments(), Math.ceil(closedForMs), ...left, observedBy]
    await this.#run(scripts.applyUpstreamLimit, this.#keys, values)
  }

  /**
   * Lets one request through, and one more for each that ends. `forgetsLimit`: what the upstream
   * said of its limiter no longer holds, because the key or the address is another.
   */
  async beginGradually({ forgetsLimit = false } = {}): Promise<void> {
    await this.#run(scripts.beginGradually, this.#keys, [forgetsLimit ? 1 : 0])
  }

  /**
   * Queues a call if its permit is expected before `deadline`, Redis time. Calls of one tick are
   * one script.
   */
  async joinWaitQueue(call: WaitQueueEntry, deadline: number): Promise<QueueAdmission | QueueRefusal> {
    return await this.#joins.add('', { call, deadline })
  }

  async #join(requests: JoinRequest[]): Promise<(QueueAdmission | QueueRefusal)[]> {
    const coalesced: string[] = []
    const values = requests.flatMap(({ call, deadline }) => {
      const key = call.coalescedKey === undefined ? 0 : coalesced.push(call.coalescedKey)
      return [memberOf(call), call.weight, deadline, key]
    })
    return readJoined(await this.#runInitialised(scripts.joinWaitQueue, [...this.#keys, ...coalesced], values))
  }

  /**
   * Removes a call from the queue, because its caller left or the call needs no permit. Harmless if
   * the call is not in the queue.
   */
  async leaveWaitQueue(call: WaitQueueEntry): Promise<void> {
    const values = [...this.#ruleArguments(), memberOf(call), call.weight]
    await this.#run(scripts.leaveWaitQueue, this.#keysWith(call), values)
  }

  /** Reads the present state of the cap, for a queued call or for a call that would arrive now. */
  async read(call?: WaitQueueEntry): Promise<CapState> {
    const values = [...this.#ruleArguments(), call ? memberOf(call) : '']
    return readState((await this.#run(scripts.read, this.#keysWith(call), values)) as number[])
  }

  /** Members of the calls that wait for a permit, the member with the lowest tag first. */
  async queuedMembers(max: number): Promise<string[]> {
    return await this.#deps.redis.zrange(capKeys.of(this.#slug, this.#bucket, 'queue'), '0', `${max - 1}`)
  }

  #keysWith(call: WaitQueueEntry | undefined): string[] {
    return call?.coalescedKey === undefined ? this.#keys : [...this.#keys, call.coalescedKey]
  }

  /**
   * The arguments of the rules: concurrency, number of rates, then the maximum and window in
   * milliseconds of each rate.
   */
  #ruleArguments(): number[] {
    const { concurrency, rates } = this.rules()
    const windows = rates.flatMap(({ max, seconds }) => [max, seconds * 1_000 + WINDOW_MARGIN_MS])
    return [concurrency, rates.length, ...windows]
  }

  async #run(script: Script, keys: string[], values: (string | number)[]): Promise<unknown> {
    return await script.run(this.#deps.redis, keys, [this.#deps.now?.() ?? '', ...values])
  }

  /** Runs a script that needs the cap's past. If Redis has lost the past, it is restored first. */
  async #runInitialised(script: Script, keys: string[], values: (string | number)[]): Promise<unknown[]> {
    for (let tries = 1; tries <= RESTORE_TRIES_MAX; tries += 1) {
      const reply = (await this.#run(script, keys, [...this.#ruleArguments(), ...values])) as unknown[]
      if (reply[0] === 'uninitialised') await this.#initialise()
      else if (reply[0] === 'needs-backfill') await this.#backfill()
      else return reply
    }
    throw new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 1_000 })
  }

  async #initialise(): Promise<void> {
    const { redis, db } = this.#deps
    await this.#run(scripts.initialise, this.#keys, [await readRememberedSince(redis, db)])
  }

  async #backfill(): Promise<void> {
    const { redis, db, now = () => redisNow(redis) } = this.#deps
    const [slug, bucket, rules] = [this.#slug, this.#bucket, this.#ruleArguments()]
    const past = await readPastGrants(db, { slug, bucket, caps: this.rules(), now: await now() })
    await this.#run(scripts.backfill, this.#keys, [...rules, ...past.flatMap(({ at, granted }) => [at, granted])])
  }
}
