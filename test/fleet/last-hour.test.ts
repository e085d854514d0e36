import assert from 'node:assert/strict'
import { it } from 'node:test'
import { LastHourReader } from '../../src/fleet/last-hour.ts'
import { keys } from '../../src/redis/keys.ts'
import { connectOwnRedis } from '../support/services.ts'

it('the last hour has all calls of a minute that was read while it ran, however long after', async (t) => {
  const { redis, stop } = await connectOwnRedis()
  t.after(stop)
  const noon = Math.floor(Date.now() / 60_000) * 60_000
  const count = async (minute: number, calls: number) =>
    await redis.hincrby(keys.minuteStats(minute / 60_000), 'c|weather|OK', calls)
  const reader = new LastHourReader(redis)
  const read = async (now: number) =>
    (await reader.read(now)).slice(-5).map(({ calls }) => calls.get('weather|OK') ?? 0)
  await count(noon - 60_000, 3)
  await count(noon, 2)
  assert.deepEqual(await read(noon + 10_000), [0, 0, 0, 3, 2])
  await count(noon, 5)
  await count(noon - 60_000, 1)
  assert.deepEqual(await read(noon + 190_000), [4, 7, 0, 0, 0])
})
