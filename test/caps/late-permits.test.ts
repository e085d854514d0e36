import assert from 'node:assert/strict'
import { it } from 'node:test'
import { WINDOW_MARGIN_MS } from '../../src/caps/timing.ts'
import { redisOfThisFile } from '../support/services.ts'
import { waiterOf } from '../support/waiter.ts'
import { World } from './world.ts'

const { redis } = await redisOfThisFile()
const WINDOW_MS = 10_000 + WINDOW_MARGIN_MS
const LATE_MS = 400

it('a permit that may be used later counts for as much longer', async () => {
  const world = await new World(redis, { concurrency: 8, rates: [{ max: 1, seconds: 10 }] }).open()
  const acquire = async (id: string, logLaterMs: number) => {
    const waiters = [waiterOf(`a|${id}`, 0)]
    const released = { ids: [], meanMs: 0 }
    const { granted, retryInMs } = await world.cap.acquire({ waiters, released, leaseMs: 6_000, logLaterMs })
    return { isGranted: granted.size === 1, retryInMs }
  }
  assert.deepEqual(await acquire('late', LATE_MS), { isGranted: true, retryInMs: 0 })
  world.now += WINDOW_MS
  assert.deepEqual(await acquire('next', 0), { isGranted: false, retryInMs: LATE_MS })
  world.now += LATE_MS
  assert.deepEqual(await acquire('next', 0), { isGranted: true, retryInMs: 0 })
  world.now += WINDOW_MS
  assert.deepEqual(await acquire('last', 0), { isGranted: true, retryInMs: 0 })
})
