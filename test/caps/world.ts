import assert from 'node:assert/strict'
import { Cap } from '../../src/caps/cap.ts'
import type { PermitId, QueueAdmission, QueueRefusal } from '../../src/caps/replies.ts'
import { REPLY_MS, WINDOW_MARGIN_MS } from '../../src/caps/timing.ts'
import type { Caps } from '../../src/catalog/upstream.ts'
import type { Db } from '../../src/db/database.ts'
import { memberOf, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { capKeys, keys, upstreamKeys } from '../../src/redis/keys.ts'

/**
 * How long a request takes, how long a lease lasts, and how often workers poll at least. Virtual
 * milliseconds.
 */
export const SERVICE_MS = 50
const LEASE_MS = 6_000
const POLL_MS = 1_000

/** Permits that a poll wants ahead, and how long a worker keeps permits that no call takes. */
const AHEAD_MAX = 3
const AHEAD_MS = 200

/**
 * How long an account has demand, and from which window on a part is kept for newcomers,
 * milliseconds.
 */
const DEMAND_MS = 300_000
const KEPT_WINDOW_MS = 60_500
const SCARCE_MAX = 100
const START = 1_800_000_000_000
const WORKERS = 2

interface ModelCall {
  entry: WaitQueueEntry
  member: string
  share: string
  tag: number | undefined
  /**
   * True if it is in the queue. Otherwise it waits in the place of an identical call, or repeats
   * its request.
   */
  hasPlace: boolean
  deadline: number
  worker: number
}

interface NewCall {
  account: string
  group?: string | undefined
  weight: number
  isAsync: boolean
  timeoutMs: number
  /** Calls for the same answer share it. */
  answer?: string | undefined
}

interface Grant {
  share: string
  at: number
}

let worlds = 0

/** The groups that hold a share, the widest first, and the share itself. */
function pathOf(share: string): string[] {
  const names = share.split('/')
  return names.map((_name, index) => names.slice(0, index + 1).join('/'))
}

/** Without a group it is the whole window, which holds every share. */
function isIn(share: string, group: string | undefined): boolean {
  return group === undefined || share === group || share.startsWith(`${group}/`)
}

/**
 * One cap in Redis with a clock of its own, the workers that use it, and what must hold at each
 * step.
 */
export class World {
  readonly cap: Cap
  readonly #redis: RedisConnection
  readonly slug: string
  readonly #rules: Caps
  now = START
  operations = 0
  granted = 0
  evicted = 0
  lastEviction: QueueRefusal['reason'] | undefined
  refused = 0
  /** Permits for calls that had less time left than the answer and the reply take. */
  grantedLate = 0
  /** Calls that got their permit without a ticket. */
  passed = 0
  /** Polls whose reply said that there is room for more. */
  roomsTold = 0
  /** Permits that were acquired ahead. */
  ahead = 0
  readonly #waiting = new Map<string, ModelCall>()
  /** Calls that had a permit. */
  readonly #served: ModelCall[] = []
  readonly #grants: Grant[] = []
  readonly #leases = new Map<PermitId, { share: string; endsAt: number; worker: number }>()
  /** Permits that were acquired ahead and that no call takes. */
  readonly #untaken = new Set<PermitId>()
  #closedUntil = 0
  /** The number that the upstream last said that it has left. */
  #left = { requests: 0, until: 0 }
  readonly #askedAt = new Map<string, number>()
  #lastAsker: string | undefined
  #askersChangedAt = 0
  #calls = 0
  /** Member of the call that came last. */
  lastMember = ''
  lastPlace: QueueAdmission | undefined

  constructor(redis: RedisConnection, rules: Caps) {
    worlds += 1
    this.slug = `world-${worlds}`
    this.#redis = redis
    this.#rules = rules
    // Nothing was lost, so Postgres is never read.
    const db = undefined as unknown as Db
    this.cap = new Cap({ redis, db, now: () => this.now }, { slug: this.slug, bucket: 'shared' }, () => rules)
  }

  async open(): Promise<this> {
    await this.#redis.set(keys.rememberedSince, 0)
    return this
  }

  get waiting(): ModelCall[] {
    return [...this.#waiting.values()]
  }

  /** How many permits a share, or all shares of a group, had. */
  grantsOf(group: string): number {
    return this.#grants.filter(({ share }) => isIn(share, group)).length
  }

  /** The shares that got permits, in order. */
  get grantedTo(): string[] {
    return this.#grants.map(({ share }) => share)
  }

  isWaiting(member: string): boolean {
    return this.#waiting.has(member)
  }

  get leases(): PermitId[] {
    return [...this.#leases.keys()]
  }

  #key(name: Parameters<typeof capKeys.of>[2]): string {
    return capKeys.of(this.slug, 'shared', name)
  }

  /**
   * A call arrives.
   * @returns why it was refused, and for how long; undefined if it waits now
   */
  async join(call: NewCall): Promise<{ reason: string; retryAfterMs: number } | undefined> {
    return await this.#join(this.#entryOf(call), call.timeoutMs)
  }

  /**
   * Calls come to one worker without tickets. If there is room for them and for all waiters, they
   * all get permits. Otherwise they join the queue.
   *
   * @returns for each as `join`; undefined also if it got its permit
   */
  async joinIfNeeded(calls: NewCall[]): Promise<({ reason: string; retryAfterMs: number } | undefined)[]> {
    const newcomers = calls.map((call) => this.#callOf(this.#entryOf(call), call.timeoutMs))
    const worker = this.#calls % WORKERS
    for (const call of newcomers) this.#waiting.set(call.member, { ...call, worker })
    const { refused } = await this.#poll(worker, newcomers)
    return newcomers.map(({ member }) => {
      const refusal = refused.get(member)
      return refusal && { reason: refusal.reason, retryAfterMs: refusal.retryAfterMs }
    })
  }

  /** A call had a permit and waits for none. It needs another permit to repeat its request. */
  repeat(pick: number): void {
    const idle = this.#served.filter(({ member, deadline }) => deadline > this.now && !this.#waiting.has(member))
    const call = idle[pick % Math.max(1, idle.length)]
    if (call) this.#waiting.set(call.member, { ...call, hasPlace: false })
  }

  #callOf(entry: WaitQueueEntry, timeoutMs: number): ModelCall {
    const member = memberOf(entry)
    const share = member.slice(0, member.indexOf('|'))
    const deadline = this.now + timeoutMs
    return { entry, member, share, tag: undefined, hasPlace: false, deadline, worker: this.#calls % WORKERS }
  }

  #noteDemand(share: string): void {
    this.#askedAt.set(share, this.now)
    if (this.#lastAsker !== undefined && this.#lastAsker !== share) this.#askersChangedAt = this.now
    this.#lastAsker = share
  }

  #assertRefusal({ reason, retryAfterMs }: QueueRefusal, share: string): void {
    this.refused += 1
    assert.ok(retryAfterMs >= 0, `retry after ${retryAfterMs}`)
    if (reason !== 'share') return
    assert.ok(retryAfterMs <= DEMAND_MS || this.#rules.rates.some((rule) => this.#hasKept(rule, share)))
  }

  #entryOf({ account, group, weight, isAsync, answer }: NewCall): WaitQueueEntry {
    this.#calls += 1
    const identity = { accountId: account, id: `call-${this.#calls}`, group, isAsync }
    const coalescedKey = answer && upstreamKeys.coalesced(this.slug, answer)
    return { ...identity, weight, slug: this.slug, bucket: 'shared', coalescedKey }
  }

  async #join(entry: WaitQueueEntry, timeoutMs: number): Promise<{ reason: string; retryAfterMs: number } | undefined> {
    this.operations += 1
    const call = this.#callOf(entry, timeoutMs)
    this.lastMember = call.member
    this.#noteDemand(call.share)
    const place = await this.cap.joinWaitQueue(entry, call.deadline)
    if ('reason' in place) {
      this.#assertRefusal(place, call.share)
      return place
    }
    assert.ok(this.now + place.etaMs <= call.deadline, 'accepted with a slot after its deadline')
    this.lastPlace = place
    if (place.kind === 'follower') return undefined
    this.#waiting.set(call.member, { ...call, tag: place.tag, hasPlace: true })
    return undefined
  }

  /** The caller leaves. */
  async leave(call: ModelCall): Promise<void> {
    this.operations += 1
    this.#waiting.delete(call.member)
    await this.cap.leaveWaitQueue(call.entry)
  }

  /** No request was sent under the permit. */
  async releaseUnused(permit: PermitId): Promise<void> {
    this.operations += 1
    this.#forget(permit)
    await this.cap.release({ unused: [permit] })
  }

  #forget(permit: PermitId): void {
    const share = this.#leases.get(permit)?.share ?? assert.fail('the permit has no lease')
    const index = this.#grants.findLastIndex((grant) => grant.share === share)
    this.#leases.delete(permit)
    this.#left.requests += 1
    // The model may forget another grant of the share than the cap does. It forgets the later
    // grant, so that it is the stricter of the two.
    this.#grants.splice(index, 1)
  }

  async applyUpstreamLimit(limit: Omit<Parameters<Cap['applyUpstreamLimit']>[0], 'observedBy'>): Promise<void> {
    this.operations += 1
    const [observedBy = 'none|1'] = this.#leases.keys()
    this.#closedUntil = Math.max(this.#closedUntil, this.now + (limit.closedForMs ?? 0))
    if (limit.remaining) {
      this.#left = { requests: limit.remaining.requests, until: this.now + limit.remaining.resetMs }
    }
    await this.cap.applyUpstreamLimit({ ...limit, observedBy })
  }

  /**
   * A probe is a waiter that goes before all calls.
   * @returns whether it got a permit
   */
  async acquireUnqueued(account: string): Promise<boolean> {
    this.#calls += 1
    const member = `${account}|unqueued-${this.#calls}`
    this.operations += 1
    const { granted } = await this.cap.acquire({
      waiters: [{ member, tag: 0, weight: 1, deadline: this.now + 60_000 }],
      released: { ids: [], meanMs: 0 },
      leaseMs: LEASE_MS,
    })
    const permit = granted.get(member)
    if (permit) this.#grant(account, permit, 0)
    else
      await this.cap.leaveWaitQueue({
        accountId: account,
        id: `unqueued-${this.#calls}`,
        isAsync: false,
        weight: 1,
        slug: this.slug,
        bucket: 'shared',
      })
    return permit !== undefined
  }

  /** Lets time pass: workers poll, requests end, calls are granted or refused. */
  async advance(ms: number): Promise<void> {
    const until = this.now + ms
    while (true) {
      const pauseMs = await this.#pollAll()
      for (const { member, deadline } of this.#waiting.values()) {
        assert.ok(deadline > this.now, `${member} was accepted and passed its deadline without a refusal`)
      }
      if (this.now >= until) return
      const ends = [...this.#leases.values()].map(({ endsAt }) => endsAt)
      const steps = [until, this.now + POLL_MS, ...ends, ...(pauseMs > 0 ? [this.now + pauseMs] : [])]
      this.now = Math.max(this.now + 1, Math.min(...steps.filter((at) => at > this.now)))
    }
  }

  /**
   * Every worker polls until no worker gets anything more.
   *
   * @returns when the next permit may be granted, milliseconds
   */
  async #pollAll(): Promise<number> {
    let pauseMs = 0
    for (let isChanged = true; isChanged; ) {
      isChanged = false
      pauseMs = 0
      for (let worker = 0; worker < WORKERS; worker += 1) {
        const { isServed, retryInMs } = await this.#poll(worker)
        isChanged ||= isServed
        if (retryInMs > 0) pauseMs = pauseMs === 0 ? retryInMs : Math.min(pauseMs, retryInMs)
      }
    }
    return pauseMs
  }

  async #poll(
    worker: number,
    newcomers: ModelCall[] = [],
  ): Promise<{ isServed: boolean; retryInMs: number; refused: Map<string, QueueRefusal> }> {
    const over = [...this.#leases].filter(([, lease]) => lease.worker === worker && lease.endsAt <= this.now)
    const ended = over.map(([permit]) => permit)
    const unused = ended.filter((permit) => this.#untaken.delete(permit))
    for (const permit of unused) this.#forget(permit)
    const ids = ended.filter((permit) => this.#leases.delete(permit))
    const released = { ids, meanMs: SERVICE_MS, unused }
    const waiting = [...this.#waiting.values()].filter((call) => call.worker === worker)
    if (waiting.length === 0 && ended.length === 0) return { isServed: false, retryInMs: 0, refused: new Map() }
    this.operations += 1
    if (waiting.length === 0) {
      await this.cap.release(released)
      return { isServed: true, retryInMs: 0, refused: new Map() }
    }
    const waiters = waiting
      .toSorted((a, b) => (a.tag ?? -1) - (b.tag ?? -1))
      .map(({ entry, member, tag, deadline }) => {
        const { weight, coalescedKey } = entry
        return { member, tag, weight, deadline, coalescedKey }
      })
    const result = await this.cap.acquire({ waiters, released, leaseMs: LEASE_MS, aheadMax: AHEAD_MAX })
    const { granted, ahead, joined, refused, room, retryInMs } = result
    for (const { member, share, tag } of waiting) {
      const isFirst = tag === undefined && (joined.has(member) || refused.get(member)?.hadPlace === false)
      if (isFirst) this.#noteDemand(share)
    }
    let passed = 0
    for (const [member, permit] of granted) {
      const call = this.#waiting.get(member) ?? assert.fail(`${member} was granted and does not wait`)
      this.#waiting.delete(member)
      if (call.deadline - this.now < SERVICE_MS + REPLY_MS) this.grantedLate += 1
      this.#served.push({ ...call, tag: joined.get(member) ?? call.tag })
      this.#grant(call.share, permit, worker)
      // If it has a key of its answer, it may have waited in the place of an identical call.
      const mayHavePlace = joined.has(member) || call.entry.coalescedKey !== undefined
      if (!mayHavePlace && newcomers.some((newcomer) => newcomer.member === member)) passed += 1
    }
    this.#keepAhead(ahead, worker)
    // The place of a call that joined later may have pushed it out again.
    for (const [member, tag] of joined) {
      const call = this.#waiting.get(member)
      if (call) this.#waiting.set(member, { ...call, tag, hasPlace: true })
    }
    for (const [member, refusal] of refused) {
      const call = this.#waiting.get(member) ?? assert.fail(`${member} was refused and does not wait`)
      this.#waiting.delete(member)
      assert.equal(refusal.hadPlace, call.hasPlace)
      if (!refusal.hadPlace) {
        this.#assertRefusal(refusal, call.share)
        continue
      }
      assert.ok(refusal.retryAfterMs > 0)
      this.lastEviction = refusal.reason
      this.evicted += 1
    }
    const left = this.#room() - (await this.#redis.zcard(this.#key('queue')))
    assert.ok(room <= Math.max(0, left), `the reply said room for ${room}, and there is room for ${left}`)
    if (room > 0) this.roomsTold += 1
    if (passed > 0) {
      this.passed += passed
      assert.ok(!this.#isScarce(), 'a scarce cap granted a permit to a call without a ticket')
      assert.ok(left >= 0, 'calls without a ticket took the room of calls that wait')
    }
    return { isServed: granted.size + refused.size + joined.size + ended.length > 0, retryInMs, refused }
  }

  /**
   * A call takes every other permit that was acquired ahead. The worker releases the others when
   * they are old.
   */
  #keepAhead(permits: PermitId[], worker: number): void {
    this.ahead += permits.length
    if (permits.length > 0) assert.ok(!this.#isScarce(), 'a scarce cap granted permits ahead')
    for (const [index, permit] of permits.entries()) {
      this.#grant('ahead', permit, worker, index % 2 === 0 ? SERVICE_MS : AHEAD_MS)
      if (index % 2 === 1) this.#untaken.add(permit)
    }
  }

  /** Requests that may start now. */
  #room(): number {
    const { concurrency, rates } = this.#rules
    const ofRates = rates.map(({ max, seconds }) => {
      const from = this.now - (seconds * 1_000 + WINDOW_MARGIN_MS)
      return max - this.#grants.filter(({ at }) => at > from).length
    })
    return Math.min(concurrency - this.#leases.size, ...ofRates)
  }

  /** Invariants at every grant. */
  #grant(share: string, permit: PermitId, worker: number, lastsMs = SERVICE_MS): void {
    this.granted += 1
    this.#leases.set(permit, { share, endsAt: this.now + lastsMs, worker })
    assert.ok(this.#leases.size <= this.#rules.concurrency, `${this.#leases.size} requests under way`)
    assert.ok(this.now >= this.#closedUntil, 'granted while the upstream was closed')
    this.#left.requests -= 1
    assert.ok(this.now >= this.#left.until || this.#left.requests >= 0, 'granted more than the upstream had left')
    this.#grants.push({ share, at: this.now })
    for (const rule of this.#rules.rates) {
      const { max, seconds } = rule
      const windowMs = seconds * 1_000 + WINDOW_MARGIN_MS
      const inWindow = this.#grants.filter(({ at }) => at > this.now - windowMs)
      assert.ok(inWindow.length <= max, `${inWindow.length} of ${max} in ${windowMs} ms`)
      if (max > 1 && max <= SCARCE_MAX) this.#assertShares(rule, share, inWindow)
    }
  }

  /** Whether a part of the window stays for shares and groups that have had little of it. */
  #hasKept({ seconds }: Caps['rates'][number], share: string): boolean {
    const isLong = seconds * 1_000 + WINDOW_MARGIN_MS > KEPT_WINDOW_MS
    return isLong && (share.startsWith('group:') || this.#askersChangedAt > this.now - 86_400_000)
  }

  /**
   * Neither the share that has just got a permit, nor any group around it, has more of the window
   * than it may.
   */
  #assertShares(rule: Caps['rates'][number], share: string, inWindow: Grant[]): void {
    const since = this.now - Math.min(rule.seconds * 1_000 + WINDOW_MARGIN_MS, DEMAND_MS)
    const askers = [...this.#askedAt].filter(([, at]) => at > since).map(([asker]) => asker)
    const countOf = (group: string | undefined) => inWindow.filter((grant) => isIn(grant.share, group)).length
    const path = pathOf(share)
    let mayHold = rule.max
    for (const [level, group] of path.entries()) {
      const around = path[level - 1]
      const kept = this.#hasKept(rule, share) ? Math.floor(mayHold / 5) : 0
      let few = kept
      const isNew = path.slice(level).every((inner) => {
        few = inner === share ? 1 : Math.max(1, Math.floor(few / 2))
        return countOf(inner) <= few
      })
      if (kept > 0 && !isNew) assert.ok(countOf(around) <= mayHold - kept, `${share} took what ${around} keeps`)
      const bounds = [mayHold - kept]
      const others = askers.filter((asker) => isIn(asker, around) && !isIn(asker, group))
      if (others.length > 0) bounds.push(Math.max(1, Math.floor(mayHold / 2)))
      const isQuarter = /(^group:|\/)q[^/]*$/.test(group)
      if (isQuarter && askers.some((asker) => !isIn(asker, group))) bounds.push(Math.max(1, Math.floor(rule.max / 4)))
      const [, ...whileOthersAsk] = bounds
      for (const bound of whileOthersAsk) {
        assert.ok(countOf(group) <= bound, `${group} has ${countOf(group)} of ${rule.max}, more than ${bound}`)
      }
      mayHold = Math.min(...bounds)
    }
  }

  /** The counters in Redis match the queue, and the queue matches the model. */
  async assertCounters(): Promise<void> {
    const [queue, deadlines, waiters, fair] = await Promise.all([
      this.#redis.zrange(this.#key('queue'), '0', '-1'),
      this.#redis.zrange(this.#key('queueDeadlines'), '0', '-1'),
      this.#redis.zrange(this.#key('waiters'), '0', '-1'),
      this.#redis.hgetall(this.#key('fair')),
    ])
    const evicted = new Set(await this.#redis.zrange(this.#key('evicted'), '0', '-1'))
    const placed = this.waiting.filter(({ hasPlace }) => hasPlace).map(({ member }) => member)
    const expected = placed.filter((member) => !evicted.has(member)).sort()
    assert.deepEqual(queue.toSorted(), expected)
    assert.deepEqual(deadlines.toSorted(), expected)
    for (const member of waiters) assert.ok(this.#waiting.has(member), `${member} is among the waiters`)
    const counts = new Map<string, number>()
    for (const member of queue) {
      const share = member.slice(0, this.#isScarce() ? member.indexOf('|') : member.lastIndexOf('|'))
      for (const group of this.#isScarce() ? pathOf(share) : [share])
        counts.set(`w:${group}`, (counts.get(`w:${group}`) ?? 0) + 1)
      if (member.includes('|~')) counts.set('async', (counts.get('async') ?? 0) + 1)
    }
    for (const [field, value] of Object.entries(fair)) {
      if (field.startsWith('w:') || field === 'async') assert.equal(Number(value), counts.get(field) ?? 0, field)
    }
    for (const [field, count] of counts) assert.equal(Number(fair[field]), count, field)
    const names = capKeys.all(this.slug, 'shared')
    const lives = await Promise.all(names.map((name) => this.#redis.pttl(name)))
    const lasting = names.filter((_name, index) => lives[index] === -1)
    assert.deepEqual(lasting, [], 'keys that never end')
  }

  #isScarce(): boolean {
    return this.#rules.rates.some(({ max }) => max <= SCARCE_MAX)
  }

  /** After everything has ended, no key is left. */
  async assertQuiet(): Promise<void> {
    assert.equal(this.#waiting.size, 0)
    for (const name of ['queue', 'queueDeadlines', 'waiters', 'waiterExpiries', 'leases', 'evicted'] as const) {
      assert.equal(await this.#redis.zcard(this.#key(name)), 0, `${name} is not empty`)
    }
  }
}
