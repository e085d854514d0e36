import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openDatabase } from '../../src/db/database.ts'
import { readMonthUsage } from '../../src/limits/month-usage.ts'
import { createLog } from '../../src/log.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'

const log = createLog({ level: 'silent', pretty: false }, 'test')
const { redis } = await redisOfThisFile()

it("what is billed of a month goes by Redis' clock, as the limits do, and not by the node's", async () => {
  // It is not connected, because Redis has the count.
  const db = openDatabase('postgres://localhost:1/none', log)
  await redis.set(accountKeys.month('account', '2027-12'), '7')
  const clock = { now: () => Date.UTC(2027, 11, 31, 23, 59) }
  const usage = await readMonthUsage({ db, redis, clock }, 'account')
  assert.deepEqual(usage, { month: '2027-12', used: 7, resetsAt: new Date(Date.UTC(2028, 0, 1)) })
  await db.destroy()
})
