import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Caps } from '../../src/catalog/upstream.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'
import { World } from './world.ts'

const { redis } = await redisOfThisFile()

/** The permits that a poll of one call brings if it wants sixteen permits ahead. */
async function poll(world: World) {
  const waiters = [waiterOf('account|polling')]
  const released = { ids: [], meanMs: 0 }
  return await world.cap.acquire({ waiters, released, leaseMs: 6_000, aheadMax: 16 })
}

const open = (rates: Caps['rates'], concurrency = 65) => new World(redis, { concurrency, rates }).open()
const WIDE = [{ max: 1_000, seconds: 1 }]
const CALL = { account: 'a', weight: 1, isAsync: false, timeoutMs: 30_000 }

it('permits ahead are at most an eighth of what the cap has left, and their room is not free for others', async () => {
  const world = await open(WIDE)
  const first = await poll(world)
  assert.equal(first.ahead.length, 8)
  assert.equal(first.room, 56)
  assert.equal(new Set([...first.ahead, ...first.granted.values()]).size, 9)
  const second = await poll(world)
  assert.equal(second.ahead.length, 6)
  await world.cap.release({ unused: [...first.ahead, ...second.ahead] })
  assert.equal((await poll(world)).ahead.length, 7)
})

it("a permit under which nothing was sent is the next call's in the poll that takes it back", async () => {
  const world = await open([{ max: 1, seconds: 60 }])
  const [unused] = (await poll(world)).granted.values()
  assert.ok(unused)
  // The upstream has counted everything except this request, which was not sent.
  await world.applyUpstreamLimit({ remaining: { requests: 1, resetMs: 60_000 } })
  const released = { ids: [], meanMs: 0, unused: [unused] }
  const { granted } = await world.cap.acquire({ waiters: [waiterOf('account|next')], released, leaseMs: 6_000 })
  assert.equal(granted.size, 1)
})

it('the permits that one poll grants, permits ahead included, have the names under which the cap stores them', async () => {
  const world = await open(WIDE)
  const { granted, ahead } = await poll(world)
  const named = [...granted.values(), ...ahead]
  assert.deepEqual(
    (await redis.zrange(capKeys.of(world.slug, SHARED_BUCKET, 'leases'), '0', '-1')).sort(),
    named.sort(),
  )
})

it('a cap with shares, and a cap with a window over a minute, grant no permits ahead', async () => {
  for (const rates of [[{ max: 100, seconds: 1 }], [{ max: 10_000, seconds: 61 }]]) {
    const { granted, ahead } = await poll(await open(rates))
    assert.deepEqual([granted.size, ahead.length], [1, 0])
  }
  assert.equal((await poll(await open([{ max: 10_000, seconds: 60 }]))).ahead.length, 8)
})

it('no permits are granted ahead while a call is queued', async () => {
  const world = await open(WIDE)
  await world.join(CALL)
  const { granted, ahead } = await poll(world)
  assert.deepEqual([granted.size, ahead.length], [1, 0])
})

it('no permits are granted ahead while the limiter of the upstream bounds the cap', async () => {
  const world = await open(WIDE)
  await world.applyUpstreamLimit({ remaining: { requests: 500, resetMs: 1_000 } })
  assert.equal((await poll(world)).ahead.length, 0)
  world.now += 1_001
  assert.equal((await poll(world)).ahead.length, 7)
})
