import assert from 'node:assert/strict'
import { it, mock } from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { AccountLimits, ANY_VERSION, LEASE_MS_MAX, type LimitRequest } from '../../src/limits/account-limits.ts'
import { LimitRefusedError } from '../../src/limits/limit-refusal.ts'
import { monthOf } from '../../src/limits/month.ts'
import { createLog } from '../../src/log.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { takeThrottle } from '../../src/throttles/throttle.ts'
import { connectRedis } from '../support/services.ts'

it("limits go by Redis' clock if the clock of the node is in another month", async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(async () => {
    mock.timers.reset()
    await stop()
  })
  const now = Date.now()
  mock.timers.enable({ apis: ['Date'], now: now + 40 * 86_400_000 })
  const taken = await new AccountLimits(redis).acquire({
    subject: { accountId: 'account', mode: 'live', version: ANY_VERSION },
    tier: 'pro',
    plan: { perMinute: 10, perMonth: 10, inFlight: 10 },
    callId: 'call_a',
    leaseMs: 1_000,
    loadUsed: async (month) => (month === monthOf(now).name ? 3 : 0),
  })
  assert.equal(taken.month?.used, 4)
  assert.ok(taken.month.resetMs <= monthOf(now).endsAt - now)
})

it('limits that were lowered refuse with one wait, for the refusal and for what is said to be left', async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(stop)
  let now = Date.now()
  const acquire = async (perMinute: number, number: number) =>
    await new AccountLimits(redis).acquire({
      subject: { accountId: 'account', mode: 'test', version: ANY_VERSION },
      tier: 'pro',
      plan: { perMinute, perMonth: 10, inFlight: 10 },
      callId: `call_${number}`,
      leaseMs: 1_000,
      loadUsed: async () => 0,
      now: () => now,
    })
  for (let number = 1; number <= 4; number += 1) {
    await acquire(10, number)
    now += 10_000
  }
  // Three of the four must leave the window before another call fits. The third was made 20 s ago.
  await assert.rejects(acquire(2, 5), (error) => {
    assert.ok(error instanceof LimitRefusedError)
    assert.equal(error.code, 'RATE_LIMIT_EXCEEDED')
    assert.equal(error.details.retryAfterMs, 40_000)
    assert.deepEqual(error.limits.minute, { used: 4, resetMs: 40_000 })
    return true
  })
})

it('a minute that is used up is over a minute later although Redis had its clock set back by an hour', async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(stop)
  let now = Date.parse('2026-10-15T12:00:00Z')
  const acquire = async (number: number) =>
    await new AccountLimits(redis).acquire({
      subject: { accountId: 'account', mode: 'test', version: ANY_VERSION },
      tier: 'pro',
      plan: { perMinute: 2, perMonth: 10, inFlight: 10 },
      callId: `call_${number}`,
      leaseMs: 1_000,
      loadUsed: async () => 0,
      now: () => now,
    })
  await acquire(1)
  await acquire(2)
  now -= 3_600_000
  await assert.rejects(acquire(3), (error) => {
    assert.ok(error instanceof LimitRefusedError)
    assert.deepEqual(error.limits.minute, { used: 2, resetMs: 60_000 })
    return true
  })
  now += 59_999
  await assert.rejects(acquire(4), LimitRefusedError)
  now += 1
  const taken = await acquire(5)
  assert.equal(taken.minute.used, 1)
})

it('a lease that nobody ends does so in time although Redis had its clock set back by an hour', async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(stop)
  const ways = {
    call: async (request: LimitRequest) => await new AccountLimits(redis).acquire(request),
    batch: async (request: LimitRequest) =>
      await new AccountLimits(redis).acquireBatch({ ...request, callIds: [request.callId], take: 'all' }),
  }
  for (const [accountId, acquire] of Object.entries(ways)) {
    let now = Date.parse('2026-10-15T12:00:00Z')
    const request = (callId: string): LimitRequest => ({
      subject: { accountId, mode: 'test', version: '1' },
      tier: 'pro',
      plan: { perMinute: 10, perMonth: 10, inFlight: 1 },
      callId,
      leaseMs: 1_000,
      loadUsed: async () => 0,
      now: () => now,
    })
    await redis.set(accountKeys.version(accountId), '1')
    await acquire(request('call_1'))
    now -= 3_600_000
    const isRefused = (error: unknown) => error instanceof GatewayError && error.code === 'CONCURRENCY_LIMIT_EXCEEDED'
    await assert.rejects(acquire(request('call_2')), isRefused)
    now += LEASE_MS_MAX - 1
    await assert.rejects(acquire(request('call_3')), isRefused)
    now += 1
    await acquire(request('call_4'))
  }
})

it('a throttle that is used up is so for one more window after Redis had its clock set back by an hour', async (t) => {
  const { redis, stop } = await connectRedis()
  t.after(stop)
  let now = Date.parse('2026-10-15T12:00:00Z')
  const log = createLog({ level: 'silent', pretty: false }, 'test')
  const take = () =>
    takeThrottle({ redis, log, now: () => now }, { name: 'login', subject: 'x', max: 1, code: 'LOGIN_THROTTLED' })
  await take()
  now -= 3_600_000
  await assert.rejects(take(), (error) => error instanceof GatewayError && error.details.retryAfterMs === 60_000)
  now += 60_000
  await take()
})
