import assert from 'node:assert/strict'
import { it } from 'node:test'
import { WINDOW_MARGIN_MS } from '../../src/caps/timing.ts'
import { keys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'
import { World } from './world.ts'

const { redis } = await redisOfThisFile()
const WINDOW_MS = 10_000 + WINDOW_MARGIN_MS
const HOUR_MS = 3_600_000

for (const [name, max] of [
  [
    'a cap of 1 in ten seconds whose Redis has its clock set back by an hour is closed for one more window, not for an hour',
    1,
  ],
  [
    'a cap of 1000 in ten seconds whose Redis has its clock set back by an hour has room again after one more window',
    1_000,
  ],
] as const) {
  it(name, async () => {
    const world = await new World(redis, { concurrency: 2 * max, rates: [{ max, seconds: 10 }] }).open()
    const acquire = async (ids: string[]) => {
      const waiters = ids.map((id) => waiterOf(`a|${id}`, 0))
      return await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
    }
    const { granted } = await acquire(Array.from({ length: max }, (_, index) => `first-${index}`))
    assert.equal(granted.size, max)
    await world.cap.applyUpstreamLimit({ closedForMs: 5_000, observedBy: [...granted.values()][0] ?? '' })
    world.now -= HOUR_MS
    const entry = { id: 'c', accountId: 'a', isAsync: false, weight: 1, slug: world.slug, bucket: 'shared' }
    const place = await world.cap.joinWaitQueue(entry, world.now + 3_000)
    assert.ok('reason' in place)
    assert.ok(place.retryAfterMs <= WINDOW_MS, `${place.retryAfterMs} ms`)
    // Everything that was granted still counts.
    assert.equal((await acquire(['too-early'])).granted.size, 0)
    world.now += WINDOW_MS - 1
    assert.equal((await acquire(['too-early'])).granted.size, 0)
    // A worker may use a permit up to a second after its grant.
    world.now += 1_001
    assert.equal((await acquire(['in-time'])).granted.size, 1)
  })
}

it('a permit is granted again within a window although its Redis had its clock set back while calls waited for it', async () => {
  const world = await new World(redis, { concurrency: 4, rates: [{ max: 1, seconds: 10 }] }).open()
  const acquire = async (id: string) => {
    const waiters = [waiterOf(`a|${id}`, 0)]
    return await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  }
  await acquire('first')
  world.now -= HOUR_MS
  assert.equal((await acquire('waiting')).granted.size, 0)
  const { granted, retryInMs } = await acquire('waiting')
  assert.equal(granted.size, 0)
  assert.ok(retryInMs <= WINDOW_MS + 1_000, `${retryInMs} ms`)
  world.now += retryInMs
  assert.equal((await acquire('waiting')).granted.size, 1)
})

it('an account has all of a cap that it alone asks for, a window after its Redis had its clock set back by an hour', async () => {
  const world = await new World(redis, { concurrency: 20, rates: [{ max: 10, seconds: 10 }] }).open()
  const call = async (accountId: string, callId: string) => {
    const entry = { id: callId, accountId, isAsync: false, weight: 1, slug: world.slug, bucket: 'shared' }
    const place = await world.cap.joinWaitQueue(entry, world.now + 3_000)
    if ('reason' in place) return place.reason
    const waiters = [waiterOf(`${accountId}|${callId}`, place.tag)]
    const { granted } = await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
    return granted.size === 1 ? 'granted' : 'waits'
  }
  assert.equal(await call('b', 'only'), 'granted')
  world.now -= HOUR_MS
  const first: string[] = []
  for (let index = 0; index < 6; index += 1) first.push(await call('a', `first-${index}`))
  assert.deepEqual(first, [...Array(5).fill('granted'), 'share'])
  world.now += WINDOW_MS + 1_001
  const second: string[] = []
  for (let index = 0; index < 10; index += 1) second.push(await call('a', `second-${index}`))
  assert.deepEqual(second, Array(10).fill('granted'))
})

it('a cap whose Redis lost its memory and then had its clock set back by an hour is closed for one window, not for an hour', async () => {
  const world = await new World(redis, { concurrency: 4, rates: [{ max: 1, seconds: 10 }] }).open()
  await redis.set(keys.rememberedSince, world.now)
  const acquire = async () => {
    const waiters = [waiterOf('a|1', 0)]
    const { granted } = await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
    return granted.size
  }
  assert.equal(await acquire(), 0)
  world.now -= HOUR_MS
  assert.equal(await acquire(), 0)
  const waiting = { id: '1', accountId: 'a', isAsync: false, weight: 1, slug: world.slug, bucket: 'shared' }
  assert.equal((await world.cap.read(waiting)).nextSlotMs, WINDOW_MS)
  world.now += WINDOW_MS - 1
  assert.equal(await acquire(), 0)
  world.now += 1
  assert.equal(await acquire(), 1)
})
