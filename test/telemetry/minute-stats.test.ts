import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../src/log.ts'
import { keys } from '../../src/redis/keys.ts'
import { MinuteStats, readQuarter } from '../../src/telemetry/minute-stats.ts'
import { readMinute } from '../support/minutes.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()
const log = createLog({ level: 'silent', pretty: false }, 'test')

test('counts that Redis refuses are written when Redis accepts writes again, and all other counts are written once', async () => {
  const at = 600_000_000
  const stats = new MinuteStats({ redis, log, now: () => at })
  const counts = keys.slotStats(at / 10_000)
  const times = { queueMs: 1, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const call = { slug: 'weather', accountId: 'account', status: 200, times }
  // A key of another type makes Redis refuse a command and not the connection, as if it were full
  // or read-only.
  await redis.set(counts, 'no hash')
  stats.add(call)
  await stats.flush()
  stats.add(call)
  await redis.del(counts)
  await stats.flush()
  const { calls, queue, accounts } = await readMinute(redis, at)
  assert.deepEqual([...calls], [['weather|OK', 2]])
  assert.equal(queue.get('weather')?.[0], 2)
  assert.deepEqual(accounts, [{ id: 'account', status: 200, count: 2 }])
  assert.ok((await redis.ttl(counts)) > 0)
  await stats.close()
  const quarter = await readQuarter(redis, at)
  assert.deepEqual([...quarter.calls], [['weather|OK', 2]], 'the chart of a day counts each call once too')
})

test('a minute keeps the accounts with most calls, of all that its nodes counted', async () => {
  const at = 1_200_000_000
  for (let node = 0; node < 8; node += 1) {
    const stats = new MinuteStats({ redis, log, now: () => at })
    for (let each = 0; each < 50; each += 1) {
      const calls = each === 0 ? 2 : 1
      const accountId = each === 0 ? 'busiest' : `account-${node}-${each}`
      for (let call = 0; call < calls; call += 1) stats.add({ slug: 'weather', accountId, status: 200 })
    }
    await stats.close()
  }
  const { accounts, calls } = await readMinute(redis, at)
  assert.equal(accounts.length, 300)
  assert.equal(calls.get('weather|OK'), 8 * 51)
  assert.equal(accounts.find(({ id }) => id === 'busiest')?.count, 16)
})
