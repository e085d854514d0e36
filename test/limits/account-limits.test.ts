import assert from 'node:assert/strict'
import { it, mock } from 'node:test'
import { AccountLimits, ANY_VERSION, monthOf, STALE } from '../../src/limits/account-limits.ts'
import { connectOwnRedis } from '../support/services.ts'

it("limits go by Redis' clock when that of the node is in another month", async (t) => {
  const { redis, stop } = await connectOwnRedis()
  t.after(async () => {
    mock.timers.reset()
    await stop()
  })
  const now = Date.now()
  mock.timers.enable({ apis: ['Date'], now: now + 40 * 86_400_000 })
  const taken = await new AccountLimits(redis).acquire({
    subject: { accountId: 'account', mode: 'live', version: ANY_VERSION },
    tier: 'pro',
    limits: { perMinute: 10, perMonth: 10, inFlight: 10 },
    callId: 'call_a',
    leaseMs: 1_000,
    loadMonthUsed: async (month) => (month === monthOf(now).name ? 3 : 0),
  })
  assert.ok(taken !== STALE)
  assert.equal(taken.month?.used, 4)
  assert.ok(taken.month.resetMs <= monthOf(now).endsAt - now)
})
