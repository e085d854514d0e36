import { randomBytes, randomUUID } from 'node:crypto'
import { Batcher } from '../async/batcher.ts'
import type { Caps } from '../catalog/upstream.ts'
import type { Db } from '../db/database.ts'
import { GatewayError } from '../errors.ts'
import { memberOf, type WaitQueueEntry, type WaitQueueIdentity } from '../queue/wait-queue-entry.ts'
import { redisNow } from '../redis/clock.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { capKeys } from '../redis/keys.ts'
import type { Script } from '../redis/script.ts'
import type { CapBucket } from './bucket.ts'
import { type CapState, capStateOf } from './cap-state.ts'
import { readPastGrants, readRememberedSince } from './cold-start.ts'
import { EVERY_WAITER, scripts } from './scripts.ts'
import { WINDOW_MARGIN_MS } from './timing.ts'

export type PermitId = string

/** A call that waits for a permit; the least tag goes first. */
export interface Waiter {
  member: string
  /** `NO_PLACE`: the call has no place in the queue. */
  tag: number
}

/** Tag of a call that did not join the queue at admission, or only to follow: it gets a permit where there is room for all, or must join first. */
export const NO_PLACE = -1

/** Permits that ended since the last poll; `meanMs` is how long their requests took. */
export interface ReleasedPermits {
  ids: PermitId[]
  meanMs: number
}

export interface AcquireResult {
  granted: Map<string, PermitId>
  /** Calls that can no longer be granted before their deadlines, by member. */
  evicted: Map<string, QueueRefusal>
  mustJoin: string[]
  /** 0 on scarce caps, which every call has to queue for. */
  room: number
  /** When the rates let the first of the others go, milliseconds; 0 when it waits for another request's end. */
  retryInMs: number
  closedForMs: number
}

export interface QueuePlace {
  /** Start tag in virtual time. */
  tag: number
  etaMs: number
  /** Another call is queued or runs for the same answer: this one has no place. Whichever runs first sends the request. */
  isFollower: boolean
  /** Another call is queued for the same answer, behind it. */
  isAhead?: true
}

export interface QueueRefusal {
  reason: 'cap' | 'share' | 'closed' | 'overloaded'
  retryAfterMs: number
}

/** What the upstream says of its own limiter. */
export interface UpstreamLimit {
  closedForMs?: number | undefined
  remaining?: { requests: number; resetMs: number } | undefined
  /** Permit of the request whose response said so. */
  observedBy: PermitId
}

export type QueuedCall = WaitQueueIdentity & Pick<WaitQueueEntry, 'coalescedKey'>

export interface CapDeps {
  redis: RedisConnection
  db: Db
  /** The clock of the scripts, for tests; Redis' own where absent. Milliseconds. */
  now?: () => number
}

type JoinReply = [decision: QueueRefusal['reason'] | 'ok' | 'follow' | 'ahead', ...[tag: string, etaMs: number]]

/** Calls that are queued in one step: a queue that must be planned for each of them keeps Redis busy meanwhile. */
const JOINED_TOGETHER_MAX = 16

interface JoinRequest {
  call: WaitQueueEntry
  deadline: number
}

/** @param retryAfterMs below 0: the call waited for its share alone */
function evictionOf(retryAfterMs: number, closedForMs: number): QueueRefusal {
  if (retryAfterMs < 0) return { reason: 'share', retryAfterMs: -retryAfterMs }
  return { reason: closedForMs > 0 ? 'closed' : 'cap', retryAfterMs }
}

type AcquireReply = [
  decision: 'ok',
  ...[retryInMs: number, closedForMs: number, evictions: number, room: number],
  ...membersAndValues: string[], // a wait in ms, 'join' or a permit
]

/** Initialise and back-fill, each once more where Redis loses its memory again meanwhile. */
const RESTORE_TRIES_MAX = 4

/**
 * The limit of one upstream on concurrency and rates, for one bucket, over all processes. Where Redis lost its past,
 * the cap stays closed for a while and restores it from Postgres.
 * @throws RedisError, or GatewayError DEPENDENCY_UNAVAILABLE without its past: without Redis nothing is granted or queued
 */
export class Cap {
  readonly name: string
  readonly #deps: CapDeps
  readonly #slug: string
  readonly #bucket: CapBucket
  readonly #keys: string[]
  readonly #rules: () => Caps
  readonly #pollKey: string
  /** Makes names of polls, and of their permits, unique: Redis may lose its last writes, and count the same numbers again. */
  readonly #pollPrefix = randomBytes(6).toString('base64url')
  #polls = 0
  readonly #joins: Batcher<JoinRequest, QueuePlace | QueueRefusal>

  /** `rules` is read at each call: operators change caps while processes run. */
  constructor(deps: CapDeps, { slug, bucket }: { slug: string; bucket: CapBucket }, rules: () => Caps) {
    this.#deps = deps
    this.#slug = slug
    this.#bucket = bucket
    this.#rules = rules
    this.#keys = capKeys.all(slug, bucket)
    this.#pollKey = capKeys.poll(slug, bucket, randomUUID())
    this.name = capKeys.of(slug, bucket, 'state')
    this.#joins = new Batcher((_cap, requests) => this.#join(requests), { itemsMax: JOINED_TOGETHER_MAX })
  }

  get rules(): Caps {
    return this.#rules()
  }

  /** Ends permits, and acquires new ones for all waiters of this worker, in one step. They are logged `logLaterMs` later than now: a worker far from Redis uses them so much later than others. */
  async acquire({
    waiters,
    released,
    leaseMs,
    logLaterMs = 0,
  }: {
    waiters: Waiter[]
    released: ReleasedPermits
    leaseMs: number
    logLaterMs?: number
  }): Promise<AcquireResult> {
    this.#polls += 1
    const poll = `${this.#pollPrefix}-${this.#polls}`
    const values = [
      ...[leaseMs, released.meanMs.toFixed(1), released.ids.length, waiters.length, logLaterMs, poll],
      ...released.ids,
      ...waiters.flatMap(({ member, tag }) => [member, tag]),
    ]
    const reply = (await this.#runInitialised(scripts.acquire, [...this.#keys, this.#pollKey], values)) as AcquireReply
    const [, retryInMs, closedForMs, evictions, room, ...pairs] = reply
    const granted = new Map<string, PermitId>()
    const evicted = new Map<string, QueueRefusal>()
    const mustJoin: string[] = []
    for (let index = 0; index < pairs.length; index += 2) {
      const [member = '', value = ''] = [pairs[index], pairs[index + 1]]
      if (member === EVERY_WAITER) {
        for (const [offset, waiter] of waiters.entries())
          granted.set(waiter.member, `${poll}.${Number(value) + offset}`)
      } else if (index < 2 * evictions) evicted.set(member, evictionOf(Number(value), closedForMs))
      else if (value === 'join') mustJoin.push(member)
      else granted.set(member, value)
    }
    return { granted, evicted, mustJoin, room, retryInMs, closedForMs }
  }

  /** Ends permits while no call of this worker waits for one. */
  async release({ ids, meanMs }: ReleasedPermits): Promise<{ isWaitedFor: boolean }> {
    return { isWaitedFor: (await this.#run(scripts.release, this.#keys, [meanMs.toFixed(1), ...ids])) === 1 }
  }

  /** @returns how many leases still existed */
  async renew(permits: PermitId[], leaseMs: number): Promise<number> {
    return Number(await this.#run(scripts.renew, this.#keys, [leaseMs, ...permits]))
  }

  /** Undoes a permit under which nothing was sent. */
  async releaseUnused(permit: PermitId): Promise<void> {
    await this.#run(scripts.releaseUnused, this.#keys, [permit])
  }

  /** Holds the cap, for all workers at once, to what the upstream itself says. */
  async applyUpstreamLimit({ closedForMs = 0, remaining, observedBy }: UpstreamLimit): Promise<void> {
    const left = [remaining?.requests ?? '', Math.ceil(remaining?.resetMs ?? 0)]
    const values = [...this.#ruleArguments(), Math.ceil(closedForMs), ...left, observedBy]
    await this.#run(scripts.applyUpstreamLimit, this.#keys, values)
  }

  /** Lets one request through, and one more for each that ends. `isOtherKey`: what the upstream said of its limiter does not hold for it. */
  async beginGradually({ isOtherKey = false } = {}): Promise<void> {
    await this.#run(scripts.beginGradually, this.#keys, [isOtherKey ? 1 : 0])
  }

  /** Queues a call if its permit is expected before `deadline`, Redis time. Calls of one tick are one script. */
  async joinWaitQueue(call: WaitQueueEntry, deadline: number): Promise<QueuePlace | QueueRefusal> {
    return await this.#joins.add('', { call, deadline })
  }

  async #join(requests: JoinRequest[]): Promise<(QueuePlace | QueueRefusal)[]> {
    const coalesced: string[] = []
    const values = requests.flatMap(({ call, deadline }) => {
      const key = call.coalescedKey === undefined ? 0 : coalesced.push(call.coalescedKey)
      return [memberOf(call), call.weight, deadline, key]
    })
    const [, ...replies] = await this.#runInitialised(scripts.joinWaitQueue, [...this.#keys, ...coalesced], values)
    return (replies as JoinReply[]).map(placeOf)
  }

  /** Takes a call out of the queue: its caller left, or it needed no permit. Harmless when it is not there. */
  async leaveWaitQueue(call: WaitQueueEntry): Promise<void> {
    const values = [...this.#ruleArguments(), memberOf(call), call.weight]
    await this.#run(scripts.leaveWaitQueue, this.#keysWith(call), values)
  }

  /** Reads the cap as it is now, for one queued call or for one that would come now. */
  async read(call?: QueuedCall): Promise<CapState> {
    const values = [...this.#ruleArguments(), call ? memberOf(call) : '']
    return capStateOf((await this.#run(scripts.read, this.#keysWith(call), values)) as number[])
  }

  /** Members of the calls that wait for a permit, the next one first. */
  async queuedMembers(max: number): Promise<string[]> {
    return await this.#deps.redis.zrange(capKeys.of(this.#slug, this.#bucket, 'queue'), '0', `${max - 1}`)
  }

  #keysWith(call: QueuedCall | undefined): string[] {
    return call?.coalescedKey === undefined ? this.#keys : [...this.#keys, call.coalescedKey]
  }

  /** Concurrency, number of rates, then each rate's max and window in milliseconds. */
  #ruleArguments(): number[] {
    const { concurrency, rates } = this.#rules()
    const windows = rates.flatMap(({ max, seconds }) => [max, seconds * 1_000 + WINDOW_MARGIN_MS])
    return [concurrency, rates.length, ...windows]
  }

  async #run(script: Script, keys: string[], values: (string | number)[]): Promise<unknown> {
    return await script.run(this.#deps.redis, keys, [this.#deps.now?.() ?? '', ...values])
  }

  /** Runs a script that needs the cap's past, which is restored first where Redis has lost it. */
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
    const past = await readPastGrants(db, { slug, bucket, caps: this.#rules(), now: await now() })
    await this.#run(scripts.backfill, this.#keys, [...rules, ...past.flatMap(({ at, granted }) => [at, granted])])
  }
}

function placeOf([decision, tag, etaMs]: JoinReply): QueuePlace | QueueRefusal {
  if (decision !== 'ok' && decision !== 'follow' && decision !== 'ahead')
    return { reason: decision, retryAfterMs: etaMs }
  const how = { isFollower: decision === 'follow', ...(decision === 'ahead' ? { isAhead: true as const } : {}) }
  return { tag: Number(tag), etaMs, ...how }
}
