import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { AccountLimits, ANY_VERSION } from '../../src/limits/account-limits.ts'
import { endCalls, noteExpectedEnd } from '../../src/limits/end-calls.ts'
import { LimitRefusedError } from '../../src/limits/limit-refusal.ts'
import type { CredentialLimits } from '../../src/limits/limit-state.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()
const USUAL: Record<string, number> = { weather: 400, 'sports-scores': 6_000 }
const health = { usualMs: (slug: string) => USUAL[slug] }
const START = Date.parse('2026-11-26T03:00:00Z')

/** An account with three calls in flight on two nodes. */
function openAccount(plan = { perMinute: 100, perMonth: 100, inFlight: 3 }) {
  const accountId = randomUUID()
  let now = START
  const acquire = async (callId: string, credential?: CredentialLimits) => {
    const subject = { accountId, mode: 'live' as const, version: ANY_VERSION, allowance: credential }
    const counts = { loadUsed: async () => 0 }
    const request = { subject, plan, tier: 'pro' as const, callId, leaseMs: 40_000, ...counts, now: () => now }
    return await new AccountLimits(redis).acquire(request)
  }
  const begin = async (
    id: string,
    slug: string,
    options: { etaMs?: number; timeMs?: number; credential?: CredentialLimits } = {},
  ) => {
    const { etaMs = 0, timeMs = 30_000, credential } = options
    await acquire(id, credential)
    const call = { id, accountId, mode: 'live' as const, slug, limitsAcquiredAt: now, deadline: now + timeMs }
    noteExpectedEnd({ redis, health }, call, etaMs)
  }
  const quoted = async (credential?: CredentialLimits) => {
    const refusal = await acquire('refused', credential).then(
      () => assert.fail('it was accepted'),
      (error) => error,
    )
    assert.ok(refusal instanceof LimitRefusedError, String(refusal))
    assert.equal(refusal.code, 'CONCURRENCY_LIMIT_EXCEEDED')
    return refusal.details.retryAfterMs
  }
  const end = async (callId: string) =>
    await endCalls(
      redis,
      { accountId, mode: 'live' },
      { calls: [{ id: callId, limitsAcquiredAt: now, refund: 'nothing' }], now },
    )
  const pass = (ms: number) => {
    now += ms
  }
  return { accountId, begin, quoted, end, pass }
}

it('a refusal by the calls in flight quotes the soonest expected end of a call, whichever node made it', async () => {
  const { begin, quoted, pass, end } = openAccount()
  await begin('slow', 'sports-scores')
  await begin('queued', 'weather', { etaMs: 9_000 })
  await begin('late', 'sports-scores', { etaMs: 60_000 })
  assert.equal(await quoted(), 6_000)
  pass(2_000)
  assert.equal(await quoted(), 4_000)
  await end('slow')
  await begin('last', 'sports-scores', { etaMs: 60_000, timeMs: 20_000 })
  assert.equal(await quoted(), 7_400)
  await end('queued')
  await begin('last of all', 'sports-scores', { etaMs: 60_000 })
  assert.equal(await quoted(), 20_000, 'a call ends by its deadline')
})

it('a refusal by the calls in flight quotes a second for a call that is quick, late, or of an unknown duration', async () => {
  for (const slug of ['weather', 'trivia']) {
    const { begin, quoted } = openAccount()
    for (const id of ['a', 'b']) await begin(id, 'sports-scores')
    await begin('quick', slug)
    assert.equal(await quoted(), 1_000, slug)
  }
  const { begin, quoted, pass } = openAccount()
  for (const id of ['a', 'b', 'c']) await begin(id, 'sports-scores')
  pass(6_500)
  assert.equal(await quoted(), 1_000)
})

it('a refusal by the limit of a key quotes the calls of that key alone', async () => {
  const { begin, quoted } = openAccount({ perMinute: 100, perMonth: 100, inFlight: 10 })
  const credential = { id: 'key', perMinute: null, perMonth: null, inFlight: 1 }
  await begin('of another key', 'weather')
  await begin('of this key', 'sports-scores', { credential })
  assert.equal(await quoted(credential), 6_000)
})

it('expected ends live as long as a lease, and ends that are over are forgotten', async () => {
  const { accountId, begin, pass } = openAccount()
  const key = accountKeys.expectedEnds(accountId, 'live')
  await begin('a', 'sports-scores')
  pass(6_000)
  await begin('b', 'sports-scores')
  assert.deepEqual(await redis.zrange(key, '0', '-1'), ['b'])
  const lifeMs = await redis.pttl(key)
  assert.ok(lifeMs > 870_000 && lifeMs <= 900_000, String(lifeMs))
  await begin('quick', 'weather')
  assert.equal(await redis.zcard(key), 1, 'a quick call costs no note')
})
