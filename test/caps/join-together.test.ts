import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Cap } from '../../src/caps/cap.ts'
import type { Caps } from '../../src/catalog/upstream.ts'
import type { Db } from '../../src/db/database.ts'
import { memberOf, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, keys, upstreamKeys } from '../../src/redis/keys.ts'
import { fc, propertyRuns } from '../support/property.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'

const CAPS: Caps[] = [
  { concurrency: 64, rates: [{ max: 1_000_000, seconds: 1 }] },
  { concurrency: 4, rates: [{ max: 600, seconds: 60 }] },
  { concurrency: 2, rates: [{ max: 120, seconds: 2 }] },
  { concurrency: 4, rates: [{ max: 1, seconds: 1 }] },
  { concurrency: 2, rates: [{ max: 20, seconds: 5 }] },
]

const call = fc
  .record({
    account: fc.constantFrom('a', 'b', 'c'),
    weight: fc.constantFrom(1, 2, 4),
    isAsync: fc.boolean(),
    timeoutMs: fc.constantFrom(1_000, 30_000),
    answer: fc.constantFrom(undefined, undefined, undefined, undefined, 'x', 'y'),
  })
  // The key of a shared answer ends by the machine's clock, and a history ends by its own clock. No
  // key may end during a history.
  .map((one) => (one.answer === undefined ? one : { ...one, timeoutMs: 30_000 }))
const step = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 16 }),
  /** Permits that the worker requested after the calls came, for the calls with the least tags. */
  granted: fc.nat(20),
  /** The acknowledgement of the calls is lost. */
  isSentAgain: fc.boolean(),
  pauseMs: fc.constantFrom(0, 10, 400, 1_500),
})

const { redis } = await redisOfThisFile()

let worlds = 0

/** One cap whose calls come together, or one after the other. */
class Side {
  now = 1_800_000_000_000
  readonly slug: string
  readonly cap: Cap
  readonly #isTogether: boolean
  #tags = new Map<string, number>()

  constructor(rules: Caps, isTogether: boolean) {
    worlds += 1
    this.slug = `side-${worlds}`
    this.#isTogether = isTogether
    const db = undefined as unknown as Db
    this.cap = new Cap({ redis, db, now: () => this.now }, { slug: this.slug, bucket: 'shared' }, () => rules)
  }

  async play(
    { calls, granted, isSentAgain, pauseMs }: typeof step extends fc.Arbitrary<infer S> ? S : never,
    number: number,
  ) {
    const requests = calls.map(({ account, weight, isAsync, timeoutMs, answer }, index) => {
      const identity = { accountId: account, id: `call-${number}-${index}`, group: undefined, isAsync }
      const coalescedKey = answer && upstreamKeys.coalesced(this.slug, answer)
      const entry: WaitQueueEntry = { ...identity, weight, slug: this.slug, bucket: 'shared', coalescedKey }
      return { entry, deadline: this.now + timeoutMs }
    })
    const replies = await this.#join(requests)
    if (isSentAgain) replies.push(...(await this.#join(requests)))
    for (const [index, reply] of replies.entries()) {
      const entry = requests[index % requests.length]?.entry ?? assert.fail()
      if ('tag' in reply && reply.kind !== 'follower') this.#tags.set(memberOf(entry), reply.tag)
    }
    const waiters = [...this.#tags].toSorted(([, a], [, b]) => a - b).map(([member, tag]) => waiterOf(member, tag))
    const asked = { waiters: waiters.slice(0, granted), released: { ids: [], meanMs: 0 }, leaseMs: 1_000 }
    const result = await this.cap.acquire(asked)
    for (const member of [...result.granted.keys(), ...result.refused.keys()]) this.#tags.delete(member)
    await this.cap.release({ ids: [...result.granted.values()].slice(0, 2), meanMs: 3_000 })
    this.now += pauseMs
    // The poll of the two workers names different calls.
    const numbers = [...result.granted].map(([member, permit]) => [member, permit.slice(permit.indexOf('.'))])
    return { replies, granted: numbers, refused: [...result.refused], state: await this.#read() }
  }

  async #join(requests: { entry: WaitQueueEntry; deadline: number }[]) {
    const join = ({ entry, deadline }: (typeof requests)[number]) => this.cap.joinWaitQueue(entry, deadline)
    if (this.#isTogether) return await Promise.all(requests.map(join))
    const replies = []
    for (const request of requests) replies.push(await join(request))
    return replies
  }

  async #read() {
    const key = (name: Parameters<typeof capKeys.of>[2]) => capKeys.of(this.slug, 'shared', name)
    return {
      fair: await redis.hgetall(key('fair')),
      queue: await redis.zrange(key('queue'), '0', '-1', 'WITHSCORES'),
      deadlines: await redis.zrange(key('queueDeadlines'), '0', '-1', 'WITHSCORES'),
      coalesced: await redis.mget(upstreamKeys.coalesced(this.slug, 'x'), upstreamKeys.coalesced(this.slug, 'y')),
    }
  }
}

it('calls that come together are queued, refused and ordered as if they came one after the other', async (t) => {
  const outcomes: Record<string, number> = {}
  await redis.set(keys.rememberedSince, 0)
  const histories = fc.array(step, { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...CAPS), histories, async (rules, steps) => {
      const [together, apart] = [new Side(rules, true), new Side(rules, false)]
      for (const [number, it] of steps.entries()) {
        const expected = await apart.play(it, number)
        assert.deepEqual(await together.play(it, number), expected)
        for (const reply of expected.replies) {
          const outcome = 'reason' in reply ? reply.reason : reply.kind === 'follower' ? 'follow' : 'ok'
          outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        }
      }
    }),
    propertyRuns(30),
  )
  t.diagnostic(JSON.stringify(outcomes))
  for (const outcome of ['ok', 'follow', 'cap', 'overloaded']) assert.ok(outcomes[outcome], `no call was ${outcome}`)
})

it('calls that are sent again because the acknowledgement of their places was lost have the same places', async () => {
  await redis.set(keys.rememberedSince, 0)
  for (const rules of CAPS) {
    const side = new Side(rules, true)
    const place = async (id: string, answer?: string) => {
      const coalescedKey = answer && upstreamKeys.coalesced(side.slug, answer)
      const entry = { accountId: 'a', id, isAsync: false, weight: 1, slug: side.slug, bucket: 'shared' }
      const joined = await side.cap.joinWaitQueue({ ...entry, coalescedKey }, side.now + 30_000)
      assert.ok('tag' in joined, JSON.stringify(joined))
      const { tag, kind } = joined
      return { tag, isFollower: kind === 'follower' }
    }
    const send = () => Promise.all([place('one'), place('two', 'x'), place('three', 'x')])
    const places = await send()
    assert.deepEqual(
      places.map(({ isFollower }) => isFollower),
      [false, false, true],
    )
    const again = await send()
    assert.deepEqual(again.slice(0, 2), places.slice(0, 2))
    assert.equal(again[2]?.isFollower, true)
    // Each history runs alone as well, without an answer that others share and with such an answer.
    assert.deepEqual([await place('one'), await place('two', 'x')], places.slice(0, 2))
    const waiting = await redis.hgetall(capKeys.of(side.slug, 'shared', 'fair'))
    assert.equal(waiting['w:a'], '2')
  }
})

it('a call that has had its permit and comes again for another permit has a place, whoever comes with it', async () => {
  const [rules = assert.fail()] = CAPS
  const side = new Side(rules, true)
  await redis.set(keys.rememberedSince, 0)
  const joined = (id: string) => {
    const entry = { accountId: 'a', id, isAsync: false, weight: 1, slug: side.slug, bucket: 'shared' }
    const coalescedKey = upstreamKeys.coalesced(side.slug, id)
    return side.cap.joinWaitQueue({ ...entry, coalescedKey }, side.now + 30_000)
  }
  await joined('one')
  const waiters = [waiterOf('a|one', 0)]
  const { granted } = await side.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 1_000 })
  assert.equal(granted.size, 1)
  const places = await Promise.all([joined('one'), joined('two')])
  for (const place of places) assert.equal('kind' in place && place.kind, 'own')
})

it('calls that come together while the cap is closed are refused, or wait until it opens, each by its deadline', async () => {
  const [rules = assert.fail()] = CAPS
  await redis.set(keys.rememberedSince, 0)
  const call = (account: string, timeoutMs: number) => ({ account, weight: 1 as const, isAsync: false, timeoutMs })
  const calls = [call('a', 1_000), call('b', 30_000), call('c', 30_000)] as Parameters<Side['play']>[0]['calls']
  const outcomes = []
  for (const isTogether of [true, false]) {
    const side = new Side(rules, isTogether)
    const state = capKeys.of(side.slug, 'shared', 'state')
    await redis.hset(state, { initialisedAt: 0, closed: side.now + 2_000 })
    const { replies } = await side.play({ calls, granted: 0, isSentAgain: false, pauseMs: 0 }, 0)
    outcomes.push(replies)
  }
  const [together = [], apart] = outcomes
  assert.deepEqual(together, apart)
  const [refused, ...waiting] = together
  assert.deepEqual(refused, { reason: 'closed', retryAfterMs: 2_000 })
  for (const place of waiting) assert.ok('etaMs' in place && place.etaMs >= 2_000, JSON.stringify(place))
})
