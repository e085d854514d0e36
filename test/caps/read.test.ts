import assert from 'node:assert/strict'
import { it } from 'node:test'
import { memberOf, type WaitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { upstreamKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'
import { World } from './world.ts'

const { redis } = await redisOfThisFile()

/**
 * A cap that granted three requests a second ago, which are under way for five more, and whose
 * queue has three calls.
 */
async function open() {
  const rates = [
    { max: 4, seconds: 10 },
    { max: 3, seconds: 5 },
  ]
  const world = await new World(redis, { concurrency: 8, rates }).open()
  const waiters = ['x', 'y', 'z'].map((account) => waiterOf(`${account}|1`, 0))
  const { granted } = await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  assert.equal(granted.size, 3)
  world.now += 1_000
  const identity = { id: '2', group: undefined, isAsync: false, weight: 1, slug: 'any', bucket: 'shared' }
  const entries = ['a', 'b', 'c'].map((accountId) => ({ ...identity, accountId }))
  for (const entry of entries) {
    const place = await world.cap.joinWaitQueue(entry, world.now + 30_000)
    assert.ok(!('reason' in place))
  }
  return { world, entries, stranger: { ...identity, accountId: 'd' } }
}

it('the state of a cap has the queue before a call that would come now, its slot, the requests under way and what is left', async () => {
  const { world } = await open()
  const state = { ahead: 3, nextSlotMs: 10_000, underWay: 3, free: 0, limitedMs: 0, left: [1, 0] }
  assert.deepEqual(await world.cap.read(), state)
})

it('the slot of a call behind others is when as many requests more have left the window', async () => {
  const world = await new World(redis, { concurrency: 8, rates: [{ max: 4, seconds: 10 }] }).open()
  for (const account of ['x', 'y', 'z']) {
    const waiters = [waiterOf(`${account}|1`, 0)]
    const { granted } = await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 1_000 })
    assert.equal(granted.size, 1)
    world.now += 1_000
  }
  const slots: number[] = []
  for (let ahead = 0; ahead < 4; ahead += 1) {
    slots.push((await world.cap.read()).nextSlotMs)
    await join(world, `${ahead}`)
  }
  // Requests were granted 3, 2 and 1 s ago, and one more may be granted at once. A window is half a
  // second longer than the upstream's own.
  assert.deepEqual(slots, [0, 7_500, 8_500, 9_500])
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

/**
 * Joins a call with two minutes' time.
 * @returns its entry, and when it will get its permit
 */
async function join(world: World, accountId: string, more: Partial<WaitQueueEntry> = {}) {
  const callId = `${joined++}`
  const entry = { id: callId, accountId, isAsync: true, weight: 1, slug: world.slug, bucket: 'shared', ...more }
  const place = await world.cap.joinWaitQueue(entry, world.now + 120_000)
  assert.ok(!('reason' in place))
  return { entry, place, at: world.now + place.etaMs }
}
let joined = 1

/**
 * A cap of ten in twenty seconds. Account a has had half of it, while account b wants permits too.
 */
async function openSpentShare() {
  const world = await new World(redis, { concurrency: 20, rates: [{ max: 10, seconds: 20 }] }).open()
  for (const account of ['b', 'a', 'a', 'a', 'a', 'a']) {
    const { entry, place } = await join(world, account, { isAsync: false })
    const waiters = [waiterOf(memberOf(entry), place.tag)]
    const { granted } = await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
    assert.equal(granted.size, 1)
  }
  return world
}

it('a queued call whose share is spent has the slot that it was quoted when it joined, and is quoted the same slot when it joins again', async () => {
  const world = await openSpentShare()
  const { entry, at } = await join(world, 'a')
  assert.equal(at - world.now, 20_500)
  world.now += 1_000
  const { ahead, nextSlotMs } = await world.cap.read(entry)
  assert.deepEqual({ ahead, nextSlotMs }, { ahead: 0, nextSlotMs: at - world.now })
  assert.equal((await join(world, 'a', entry)).at, at)
})

it('a call that shares the answer of a queued one has its place and slot', async () => {
  const world = await openSpentShare()
  const coalescedKey = upstreamKeys.coalesced(world.slug, 'x')
  const leader = await join(world, 'a', { coalescedKey })
  const follower = await join(world, 'a', { coalescedKey })
  assert.equal(follower.place.kind, 'follower')
  assert.equal(follower.at, leader.at)
  world.now += 1_000
  const { ahead, nextSlotMs } = await world.cap.read(follower.entry)
  assert.deepEqual({ ahead, nextSlotMs }, { ahead: 0, nextSlotMs: leader.at - world.now })
  await world.cap.leaveWaitQueue(leader.entry)
  assert.equal((await world.cap.read(follower.entry)).ahead, -1)
})

it('the slot of an asynchronous call is after the slot of a later synchronous call that goes first', async () => {
  const world = await new World(redis, { concurrency: 4, rates: [{ max: 1, seconds: 5 }] }).open()
  const { granted } = await world.cap.acquire({
    waiters: [waiterOf('x|1', 0)],
    released: { ids: [], meanMs: 0 },
    leaseMs: 6_000,
  })
  assert.equal(granted.size, 1)
  const [, second] = [await join(world, 'a'), await join(world, 'b')]
  assert.equal((await world.cap.read(second.entry)).nextSlotMs, 11_000)
  await join(world, 'c', { isAsync: false })
  assert.equal((await world.cap.read(second.entry)).nextSlotMs, 16_500)
})

it('a call in a queue too long to plan for each reader has the slot that it was quoted when it joined', async () => {
  const world = await new World(redis, { concurrency: 40, rates: [{ max: 20, seconds: 1 }] }).open()
  await join(world, 'b')
  const told: Awaited<ReturnType<typeof join>>[] = []
  for (let index = 0; index < 200; index += 1) told.push(await join(world, 'a'))
  for (const { entry, at } of [told[20], told[100], told[199]].map((one) => one ?? assert.fail())) {
    assert.equal((await world.cap.read(entry)).nextSlotMs, at - world.now)
  }
})

it('the slot of a queued call, and of a call that would come now, is not before connections are free for those before it', async () => {
  const world = await new World(redis, { concurrency: 1, rates: [{ max: 5_000, seconds: 60 }] }).open()
  const { granted } = await world.cap.acquire({
    waiters: [waiterOf('x|1', 0)],
    released: { ids: [], meanMs: 0 },
    leaseMs: 6_000,
  })
  await world.cap.release({ ids: [...granted.values()], meanMs: 400 })
  const [first, second] = [await join(world, 'a'), await join(world, 'a')]
  assert.deepEqual([first.place.etaMs, second.place.etaMs], [0, 400])
  assert.equal((await world.cap.read(second.entry)).nextSlotMs, 400)
  // A call that would come now.
  assert.equal((await world.cap.read()).nextSlotMs, 800)
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
  const spent = await world.cap.read()
  assert.deepEqual({ free: spent.free, limitedMs: spent.limitedMs }, { free: 0, limitedMs: 1_000 })
  world.now += 1_000
  assert.equal((await world.cap.read()).free, 1)
  await world.applyUpstreamLimit({ closedForMs: 1_500 })
  const { free, limitedMs } = await world.cap.read()
  assert.deepEqual({ free, limitedMs }, { free: 0, limitedMs: 1_500 })
})
