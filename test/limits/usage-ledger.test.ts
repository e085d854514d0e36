import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { decodeEntry, recordUsage, type UsedCall } from '../../src/limits/usage-ledger.ts'
import { keys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()

it('calls that have ended are counted by day, key, API and status, and once however often they are recorded', async () => {
  const call = {
    accountId: randomUUID(),
    slug: 'weather',
    mode: 'live',
    limitsAcquiredAt: Date.UTC(2027, 0, 31),
  } as const
  const ended: UsedCall[] = [
    { call, verdict: { reach: 'answered' } },
    { call, verdict: { reach: 'unsent' } },
    { call, verdict: { reach: 'sent', code: 'UPSTREAM_ERROR' } },
    { call, verdict: { reach: 'refused', code: 'RATE_LIMIT_EXCEEDED' } },
    { call, verdict: { reach: 'unsent', code: 'CALL_CANCELLED' } },
    { call, verdict: { reach: 'sent', code: 'CALL_CANCELLED' } },
  ]
  for (const id of ['first', 'first', 'second', 'first']) await recordUsage(redis, ended, id)
  const pending = Object.entries(await redis.hgetall(keys.usagePending))
  const counts = pending.map(([field, calls]) => {
    const { day, status, isRefused } = decodeEntry(field) ?? assert.fail(field)
    return [day, status, isRefused, Number(calls)]
  })
  assert.deepEqual(counts.toSorted(), [
    ['2027-01-31', 200, false, 4],
    ['2027-01-31', 429, true, 2],
    ['2027-01-31', 499, false, 2],
    ['2027-01-31', 499, true, 2],
    ['2027-01-31', 502, false, 2],
  ])
})
