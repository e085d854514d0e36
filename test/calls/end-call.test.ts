import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { completeCall } from '../../src/calls/end-async-call.ts'
import { accountKeys, keys } from '../../src/redis/keys.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis, url } = await redisOfThisFile()

/** A running call, how often it was counted, and whether its lease exists. */
async function open() {
  const accountId = randomUUID()
  const call = {
    id: `call_${accountId}`,
    accountId,
    slug: 'weather',
    mode: 'live',
    limitsAcquiredAt: Date.now(),
  } as const
  const leases = accountKeys.inFlight(accountId, 'live')
  await redis.zadd(leases, Date.now() + 60_000, call.id)
  return {
    call,
    counted: async () => {
      const pending = Object.entries(await redis.hgetall(keys.usagePending))
      return pending.filter(([field]) => field.includes(accountId)).map(([, calls]) => Number(calls))
    },
    isInFlight: async () => (await redis.zscore(leases, call.id)) !== null,
  }
}

it('an asynchronous call is counted once if the connection breaks between its release and the reply to it', async (t) => {
  const { call, counted, isInFlight } = await open()
  const { redis: worker, proxy } = await connectThroughProxy(t, url, 'blocking')
  proxy.delay(150)
  const completing = completeCall(worker, call, { reach: 'answered' })
  await until(async () => !(await isInFlight()))
  proxy.reset()
  proxy.heal()
  await completing
  assert.deepEqual(await counted(), [1])
})

it('an asynchronous call that two processes end is counted once, and only the first process learns that it was the first', async () => {
  const { call, counted, isInFlight } = await open()
  const outcomes = await Promise.all([
    completeCall(redis, call, { reach: 'answered' }),
    completeCall(redis, call, { reach: 'answered' }),
  ])
  assert.deepEqual(outcomes.toSorted(), [false, true])
  assert.deepEqual(await counted(), [1])
  assert.equal(await isInFlight(), false)
})

it('an asynchronous call that ends after its lease is counted once and gets its unit of the month back', async () => {
  const { call, counted } = await open()
  const month = accountKeys.month(call.accountId, new Date(call.limitsAcquiredAt).toISOString().slice(0, 7))
  await redis.set(month, 5)
  await redis.zrem(accountKeys.inFlight(call.accountId, 'live'), call.id)
  assert.equal(await completeCall(redis, call, { code: 'UPSTREAM_TIMEOUT', reach: 'sent' }), true)
  assert.equal(await completeCall(redis, call, { code: 'UPSTREAM_TIMEOUT', reach: 'sent' }), false)
  assert.equal(await redis.get(month), '4')
  assert.deepEqual(await counted(), [1])
})
