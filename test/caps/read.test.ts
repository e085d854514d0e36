import assert from 'node:assert/strict'
import { it } from 'node:test'
import { redisOfThisFile } from '../support/services.ts'
import { World } from './world.ts'

const { redis } = await redisOfThisFile()

/** A cap that granted three requests a second ago, which are under way for five more, and whose queue has three calls. */
async function open() {
  const rates = [
    { max: 4, seconds: 10 },
    { max: 3, seconds: 5 },
  ]
  const world = await new World(redis, { concurrency: 8, rates }).open()
  const waiters = ['x', 'y', 'z'].map((account) => ({ member: `${account}|1`, tag: 0 }))
  const { granted } = await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  assert.equal(granted.size, 3)
  world.now += 1_000
  const identity = { callId: '2', shareGroup: undefined, isAsync: false }
  const entries = ['a', 'b', 'c'].map((accountId) => ({ ...identity, accountId }))
  for (const entry of entries) {
    const place = await world.cap.joinWaitQueue(
      { ...entry, weight: 1, slug: 'any', bucket: 'shared' },
      world.now + 30_000,
    )
    assert.ok(!('refused' in place))
  }
  return { world, entries, stranger: { ...identity, accountId: 'd' } }
}

it('the state of a cap has the queue before a call that would come now, its slot, the requests under way and what is left', async () => {
  const { world } = await open()
  const state = { ahead: 3, nextSlotMs: 10_000, underWay: 3, free: 0, left: [1, 0] }
  assert.deepEqual(await world.cap.read(), state)
})

it('the state of a cap has the place and the slot of a queued call, and says of another that it is not queued', async () => {
  const { world, entries, stranger } = await open()
  const places = await Promise.all([...entries, stranger].map((entry) => world.cap.read(entry)))
  assert.deepEqual(
    places.map(({ ahead, nextSlotMs }) => [ahead, nextSlotMs]),
    [
      [0, 4_500],
      [1, 9_500],
      [2, 9_500],
      [-1, 4_500],
    ],
  )
})

it('the state of a cap counts no lease that has ended and no grant that has left its window', async () => {
  const { world } = await open()
  world.now += 5_000
  const { underWay, free, left } = await world.cap.read()
  assert.deepEqual({ underWay, free, left }, { underWay: 0, free: 1, left: [1, 3] })
})

it('the state of a cap has no free slot while its upstream is closed or has none left', async () => {
  const { world } = await open()
  world.now += 5_000
  assert.equal((await world.cap.read()).free, 1)
  await world.applyUpstreamLimit({ remaining: { requests: 0, resetMs: 1_000 } })
  assert.equal((await world.cap.read()).free, 0)
  world.now += 1_000
  assert.equal((await world.cap.read()).free, 1)
  await world.applyUpstreamLimit({ closedForMs: 1_000 })
  assert.equal((await world.cap.read()).free, 0)
})
