import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Cap } from '../../src/caps/cap.ts'
import type { Caps } from '../../src/catalog/upstream.ts'
import type { Db } from '../../src/db/database.ts'
import { memberOf, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, keys, upstreamKeys } from '../../src/redis/keys.ts'
import { fc, propertyRuns } from '../support/property.ts'
import { redisOfThisFile } from '../support/services.ts'

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
  // The key of a shared answer ends by the machine's clock, that of a history by its own: none may end meanwhile.
  .map((one) => (one.answer === undefined ? one : { ...one, timeoutMs: 30_000 }))
const step = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 16 }),
  /** Permits asked for after the calls came, of those with the least tags. */
  granted: fc.nat(20),
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

  async play({ calls, granted, pauseMs }: typeof step extends fc.Arbitrary<infer S> ? S : never, number: number) {
    const requests = calls.map(({ account, weight, isAsync, timeoutMs, answer }, index) => {
      const identity = { accountId: account, callId: `call-${number}-${index}`, shareGroup: undefined, isAsync }
      const coalescedKey = answer && upstreamKeys.coalesced(this.slug, answer)
      const entry: WaitQueueEntry = { ...identity, weight, slug: this.slug, bucket: 'shared', coalescedKey }
      return { entry, deadline: this.now + timeoutMs }
    })
    const replies = []
    if (this.#isTogether) {
      replies.push(...(await Promise.all(requests.map((it) => this.cap.joinWaitQueue(it.entry, it.deadline)))))
    } else {
      for (const { entry, deadline } of requests) replies.push(await this.cap.joinWaitQueue(entry, deadline))
    }
    for (const [index, reply] of replies.entries()) {
      const entry = requests[index]?.entry ?? assert.fail()
      if ('tag' in reply && !reply.isFollower) this.#tags.set(memberOf(entry), reply.tag)
    }
    const waiters = [...this.#tags].map(([member, tag]) => ({ member, tag })).sort((a, b) => a.tag - b.tag)
    const asked = { waiters: waiters.slice(0, granted), released: { ids: [], meanMs: 0 }, leaseMs: 1_000 }
    const result = await this.cap.acquire(asked)
    for (const member of [...result.granted.keys(), ...result.evicted.keys()]) this.#tags.delete(member)
    await this.cap.release({ ids: [...result.granted.values()].slice(0, 2), meanMs: 3_000 })
    this.now += pauseMs
    return { replies, granted: [...result.granted], evicted: [...result.evicted], state: await this.#read() }
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
          const outcome = 'refused' in reply ? reply.refused : reply.isFollower ? 'follow' : 'ok'
          outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        }
      }
    }),
    propertyRuns(30),
  )
  t.diagnostic(JSON.stringify(outcomes))
  for (const outcome of ['ok', 'follow', 'cap', 'overloaded']) assert.ok(outcomes[outcome], `no call was ${outcome}`)
})
