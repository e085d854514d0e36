import assert from 'node:assert/strict'
import { it } from 'node:test'
import { LastHourReader, recentOf, toLastMinute } from '../../src/fleet/last-hour.ts'
import { keys } from '../../src/redis/keys.ts'
import { connectRedis } from '../support/services.ts'

it('the last hour has all calls of a minute that was read while it ran, however long after', async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(stop)
  const noon = Math.floor(Date.now() / 60_000) * 60_000
  const count = async (minute: number, calls: number) =>
    await redis.hincrby(keys.slotStats(minute / 10_000), 'c|weather|OK', calls)
  const reader = new LastHourReader(redis)
  const read = async (now: number) =>
    (await reader.read(now)).minutes.slice(-5).map(({ calls }) => calls.get('weather|OK') ?? 0)
  await count(noon - 60_000, 3)
  await count(noon, 2)
  assert.deepEqual(await read(noon + 10_000), [0, 0, 0, 3, 2])
  await count(noon, 5)
  await count(noon - 60_000, 1)
  assert.deepEqual(await read(noon + 190_000), [4, 7, 0, 0, 0])
})

it('the last minute is the last sixty seconds, wherever a minute of the clock begins', async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(stop)
  const noon = Math.floor(Date.now() / 60_000) * 60_000
  const count = async (at: number, code: string, calls: number) =>
    await redis.hincrby(keys.slotStats(Math.floor(at / 10_000)), `c|weather|${code}`, calls)
  await count(noon - 30_000, 'OK', 2)
  await count(noon + 5_000, 'UPSTREAM_ERROR', 40)
  const at = async (now: number) => await new LastHourReader(redis).read(now)
  assert.deepEqual(toLastMinute(await at(noon + 12_000)), { answered: 2, refused: 0, failed: 40 })
  // Half of the slot lies within the last sixty seconds.
  assert.deepEqual(toLastMinute(await at(noon + 35_000)), { answered: 1, refused: 0, failed: 40 })
  assert.deepEqual(toLastMinute(await at(noon + 75_000)), { answered: 0, refused: 0, failed: 0 })
  const recent = recentOf(await at(noon + 75_000), 'weather')
  assert.deepEqual([recent.answered, recent.failed], [2, 40])
  assert.deepEqual([recent.answeredAt, recent.lastAt.UPSTREAM_ERROR], [noon - 20_000, noon + 10_000])
  assert.equal(recentOf(await at(noon + 320_000), 'weather').failed, 0, 'more than five minutes ago')
})
