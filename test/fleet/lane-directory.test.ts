import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { LaneDirectory } from '../../src/fleet/lane-directory.ts'
import { createLog } from '../../src/log.ts'
import { earlierLaneOf, laneOfOnly } from '../../src/queue/lanes.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { keys } from '../../src/redis/keys.ts'
import { digestOfAll, type KnownApis, publishApis } from '../../src/telemetry/known-apis.ts'
import { until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/** Lanes in a fleet whose workers say what the test lets them say. */
async function open(t: TestContext) {
  const { directoryOf } = await openFleet(t)
  return async (...workers: object[]) => {
    const directory = await directoryOf(...workers)
    return (slug: string) => directory.laneOf(slug)
  }
}

async function openFleet(t: TestContext) {
  const services = await startServices()
  const redis = openRedis([services.redisUrl], 'blocking', log)
  await until(() => redis.status === 'ready')
  t.after(async () => {
    await closeRedis(redis)
    await services.stop()
  })
  const clock = { ms: Date.now() }
  const directoryOf = async (...workers: object[]): Promise<LaneDirectory> => {
    await redis.del(keys.processes)
    for (const [index, worker] of workers.entries()) {
      const beat = { id: String(index), kind: 'worker', at: clock.ms, startedAt: index, isDraining: false, ...worker }
      await redis.hset(keys.processes, String(index), JSON.stringify(beat))
    }
    const directory = new LaneDirectory({ redis, now: () => clock.ms, log })
    await directory.open()
    directory.close()
    return directory
  }
  return { redis, clock, directoryOf }
}

test('the calls of an API travel in the lane of all APIs, or in the lane of the workers that name the API', async (t) => {
  const read = await open(t)
  assert.deepEqual((await read())('weather'), LANE, 'without workers')
  const laneOf = await read({ hasLanes: true }, { hasLanes: true, serves: ['weather', 'currency'] })
  assert.deepEqual(laneOf('countries'), LANE)
  assert.deepEqual(laneOf('weather'), laneOfOnly(['currency', 'weather']))
  assert.deepEqual(laneOf('currency'), laneOf('weather'))
  const only = await read({ hasLanes: true, serves: ['weather'], isDraining: true }, { hasLanes: true })
  assert.deepEqual(only('weather'), LANE, 'a worker that ends leaves its APIs to the others')
})

test('the calls of an API travel in its earlier queue while only workers of an earlier version serve it', async (t) => {
  const read = await open(t)
  assert.deepEqual((await read({}))('weather'), earlierLaneOf('weather'))
  assert.deepEqual((await read({}, { hasLanes: true }))('weather'), LANE)
  const laneOf = await read({ serves: ['weather'] }, { hasLanes: true, serves: ['currency'] })
  assert.deepEqual(laneOf('weather'), earlierLaneOf('weather'))
  assert.deepEqual(laneOf('currency'), laneOfOnly(['currency']))
})

test('an API has a worker if a living worker serves it, or while workers may still be starting', async (t) => {
  const { clock, directoryOf } = await openFleet(t)
  const haveWorker = async (...workers: object[]) => {
    const directory = await directoryOf(...workers)
    const haveNow = () => ['weather', 'currency'].map((slug) => directory.hasWorker(slug))
    const atStart = haveNow()
    clock.ms += 10_000
    return { atStart, later: haveNow() }
  }
  assert.deepEqual(await haveWorker(), { atStart: [true, true], later: [false, false] })
  assert.deepEqual(await haveWorker({ serves: ['weather'] }), { atStart: [true, true], later: [true, false] })
  const { later } = await haveWorker({ serves: ['weather'], isDraining: true }, {})
  assert.deepEqual(later, [true, true])
})

test('documents count as loaded when every worker reports them, and not while no worker reports anything', async (t) => {
  const { redis, directoryOf } = await openFleet(t)
  const [before, loaded] = [{ weather: '' }, { weather: '', shop: 'd1' }]
  for (const list of [before, loaded]) await publishApis(redis, list)
  const shop = (digest: string) => [{ slug: 'shop', upstream: { own: { digest, mayBePrivate: false } } }]
  const areLoaded = async (...lists: KnownApis[]): Promise<boolean> => {
    const directory = await directoryOf(...lists.map((list) => ({ hasLanes: true, apis: digestOfAll(list) })))
    return directory.areLoaded(shop('d1'))
  }
  assert.equal(await areLoaded(), false)
  assert.equal(await areLoaded(loaded, before), false)
  assert.equal(await areLoaded(loaded, loaded), true)
  assert.equal(await areLoaded({ ...loaded, shop: 'd2' }), false)
})
