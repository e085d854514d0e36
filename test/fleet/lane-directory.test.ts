import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { LaneDirectory } from '../../src/fleet/lane-directory.ts'
import { createLog } from '../../src/log.ts'
import { earlierLaneOf, laneOfOnly } from '../../src/queue/lanes.ts'
import { closeRedis, openRedis } from '../../src/redis/connection.ts'
import { keys } from '../../src/redis/keys.ts'
import { until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'
import { startServices } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')

/** A directory of a fleet whose workers say what the test lets them say. */
async function open(t: TestContext) {
  const services = await startServices()
  const redis = openRedis([services.redisUrl], 'blocking', log)
  await until(() => redis.status === 'ready')
  t.after(async () => {
    await closeRedis(redis)
    await services.stop()
  })
  return async (...workers: object[]) => {
    await redis.del(keys.processes)
    for (const [index, worker] of workers.entries()) {
      const beat = { id: String(index), kind: 'worker', at: Date.now(), startedAt: index, isDraining: false, ...worker }
      await redis.hset(keys.processes, String(index), JSON.stringify(beat))
    }
    const directory = new LaneDirectory({ redis, now: Date.now, log })
    await directory.open()
    directory.close()
    return (slug: string) => directory.laneOf(slug)
  }
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
