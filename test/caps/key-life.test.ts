import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Waiter } from '../../src/caps/cap.ts'
import { WINDOW_MARGIN_MS } from '../../src/caps/timing.ts'
import { type CapKeyName, capKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'
import { World } from './world.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const WINDOW_MS = HOUR_MS + WINDOW_MARGIN_MS
/** How long the keys of a cap live after its last use. */
const LIFE_MS = DAY_MS + WINDOW_MS

const { redis } = await redisOfThisFile()

/**
 * Keys that live as long as the cap is used. The keys of demand, of evictions and of shared answers
 * do not.
 */
const LASTING = ['fair', 'queue', 'queueDeadlines', 'waiters', 'waiterExpiries', 'log', 'leases', 'state'] as const

/** A cap that allows two requests at once, with a use of all its keys. */
async function open() {
  const world = await new World(redis, { concurrency: 2, rates: [{ max: 50, seconds: 3_600 }] }).open()
  let calls = 0
  let waiters: Waiter[] = []
  const permits: string[] = []
  const join = async () => {
    calls += 1
    const entry = { accountId: 'a', id: String(calls), group: undefined, isAsync: false, weight: 1 }
    const place = await world.cap.joinWaitQueue({ ...entry, slug: world.slug, bucket: 'shared' }, world.now + 30_000)
    assert.ok('tag' in place)
    waiters.push(waiterOf(`a|${calls}`, place.tag))
  }
  /**
   * Three calls come and a request ends. As many calls as possible get permits, and the others
   * wait.
   */
  const use = async () => {
    for (let call = 0; call < 3; call += 1) await join()
    const released = { ids: permits.splice(0, 1), meanMs: 10 }
    const { granted } = await world.cap.acquire({ waiters, released, leaseMs: 6_000 })
    assert.ok(granted.size > 0)
    waiters = waiters.filter(({ member }) => !granted.has(member))
    permits.push(...granted.values())
  }
  const keyOf = (name: CapKeyName) => capKeys.of(world.slug, 'shared', name)
  /** The life of a key, milliseconds; -1 if the key lives for ever, -2 if there is no key. */
  const lifeOf = (name: CapKeyName) => redis.pttl(keyOf(name))
  const setLives = (ms: number) => Promise.all(LASTING.map((name) => redis.pexpire(keyOf(name), ms)))
  return { world, join, use, lifeOf, setLives }
}

/** Asserts that a life is `expectedMs`, less the time that the test itself takes. */
function assertLife(ms: number, expectedMs: number, what: string): void {
  assert.ok(ms > expectedMs - MINUTE_MS && ms <= expectedMs, `${what} lives ${ms} ms, not ${expectedMs}`)
}

it('every key of a cap ends a day after its longest window, and demand five minutes after the last call', async () => {
  const { use, lifeOf } = await open()
  await use()
  for (const name of LASTING) assertLife(await lifeOf(name), LIFE_MS, name)
  assertLife(await lifeOf('demand'), 5 * MINUTE_MS, 'demand')
})

it('the life of every key of a cap is renewed when half of it is over, and not before', async () => {
  const { use, lifeOf, setLives } = await open()
  await use()
  const half = WINDOW_MS + DAY_MS / 2
  await setLives(half + HOUR_MS)
  await use()
  for (const name of ['fair', 'queue', 'queueDeadlines', 'log', 'leases', 'state'] as const) {
    assertLife(await lifeOf(name), half + HOUR_MS, name)
  }
  await setLives(half - MINUTE_MS)
  await use()
  for (const name of LASTING) assertLife(await lifeOf(name), LIFE_MS, name)
})

it('a cap whose calls never get a permit leaves no key behind for ever', async () => {
  const { join, lifeOf } = await open()
  await join()
  assertLife(await lifeOf('state'), DAY_MS, 'state')
})

it('the leases of a cap that had none end with its other keys', async () => {
  const { world, use, lifeOf } = await open()
  await use()
  world.now += 6_001
  await use()
  assertLife(await lifeOf('leases'), LIFE_MS, 'leases')
})

it('a repeated request leaves no key behind for ever', async () => {
  const { use, world, lifeOf } = await open()
  await use()
  await redis.del(capKeys.of(world.slug, 'shared', 'fair'))
  world.now += 6_001
  const waiters = [waiterOf('a|1', 2 ** 30)]
  const { granted } = await world.cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  assert.equal(granted.size, 1)
  assert.notEqual(await lifeOf('fair'), -1)
})

it('what is written to the state of a cap that Redis lost, or that had no call yet, does not stay for ever', async () => {
  const writers = {
    close: async ({ cap }: World) => await cap.applyUpstreamLimit({ closedForMs: 1_000, observedBy: 'a|1|1' }),
    limit: async ({ cap }: World) =>
      await cap.applyUpstreamLimit({ remaining: { requests: 3, resetMs: 1_000 }, observedBy: 'a|1|1' }),
    begin: async ({ cap }: World) => await cap.beginGradually(),
  }
  for (const [name, write] of Object.entries(writers)) {
    const { world, lifeOf } = await open()
    await write(world)
    const lifeMs = await lifeOf('state')
    assert.ok(lifeMs > DAY_MS - MINUTE_MS && lifeMs <= LIFE_MS, `${name}: ${lifeMs} ms`)
  }
  const { world, lifeOf } = await open()
  await world.cap.release({ ids: ['a|1|1'], meanMs: 10 })
  assert.equal(await lifeOf('state'), -2, 'the end of a permit that Redis lost writes nothing')
})
