import assert from 'node:assert/strict'
import { it } from 'node:test'
import { AccountLimits, acquireTogether, type LimitSubject } from '../../src/limits/account-limits.ts'
import { endCalls } from '../../src/limits/end-calls.ts'
import { recordUsage } from '../../src/limits/usage-ledger.ts'
import { createLog } from '../../src/log.ts'
import { recordAsyncCall } from '../../src/queue/async-call.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { storeBody } from '../../src/queue/reply-body.ts'
import { startCall, storeResult } from '../../src/queue/results.ts'
import { accountKeys, keys } from '../../src/redis/keys.ts'
import { takeThrottle } from '../../src/throttles/throttle.ts'
import { redisOfThisFile } from '../support/services.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

const { redis } = await redisOfThisFile()
const accountLimits = new AccountLimits(redis)
const log = createLog({ level: 'silent', pretty: false }, 'test')

/** The lives of keys, to the time that the test itself takes. */
async function assertLives(expected: Record<string, number>): Promise<void> {
  for (const [key, ms] of Object.entries(expected)) {
    const lifeMs = await redis.pttl(key)
    assert.ok(lifeMs > ms - 30 * SECOND && lifeMs <= ms, `${key} lives ${lifeMs} ms, not ${ms}`)
  }
}

async function createAccount(accountId: string) {
  const subject: LimitSubject = { accountId, mode: 'live', version: 'v' }
  await redis.set(accountKeys.version(accountId), 'v')
  const limits = { perMinute: 10, inFlight: 10, perMonth: 100, resultMegabytes: 1 }
  const request = { subject, tier: 'pro' as const, plan: limits, leaseMs: MINUTE, loadUsed: async () => 0 }
  return { request, minute: accountKeys.minute(accountId, 'live'), inFlight: accountKeys.inFlight(accountId, 'live') }
}

it('the keys of account limits live four and thirty minutes, and again when half of that is over', async () => {
  const { request, minute, inFlight } = await createAccount('single')
  await acquireTogether(redis, [{ ...request, callId: 'one' }])
  await assertLives({ [minute]: 4 * MINUTE, [inFlight]: 30 * MINUTE })
  await redis.pexpire(minute, 3 * MINUTE)
  await redis.pexpire(inFlight, 20 * MINUTE)
  await acquireTogether(redis, [{ ...request, callId: 'two' }])
  await assertLives({ [minute]: 3 * MINUTE, [inFlight]: 20 * MINUTE })
  await redis.pexpire(minute, 2 * MINUTE - 1)
  await redis.pexpire(inFlight, 15 * MINUTE - 1)
  await acquireTogether(redis, [{ ...request, callId: 'three' }])
  await assertLives({ [minute]: 4 * MINUTE, [inFlight]: 30 * MINUTE })
})

it('the keys of account limits live as long when a batch takes them', async () => {
  const { request, minute, inFlight } = await createAccount('batch')
  await accountLimits.acquireBatch({ ...request, callIds: ['one', 'two'], take: 'all' })
  await assertLives({ [minute]: 4 * MINUTE, [inFlight]: 30 * MINUTE })
})

it('the keys of account limits live as long when a batch of one call at a time hands its lease on', async () => {
  const { request, inFlight } = await createAccount('handed-on')
  const { subject, plan } = request
  await accountLimits.acquireBatch({ ...request, plan: { ...plan, inFlight: 1 }, callIds: ['one', 'two'], take: 'all' })
  const next = { callId: 'two', leaseMs: MINUTE }
  const handingOn = { id: 'one', limitsAcquiredAt: Date.now(), refund: 'nothing', next } as const
  await endCalls(redis, subject, { calls: [handingOn] })
  await assertLives({ [inFlight]: 30 * MINUTE })
})

it('the keys of throttles live as long as their window', async () => {
  await takeThrottle({ redis, log }, { name: 'login', subject: 'any', max: 4, code: 'LOGIN_THROTTLED' })
  await assertLives({ [keys.throttle('login', 'any')]: MINUTE })
})

it('the keys by which usage is counted once live five minutes', async () => {
  const call = { accountId: 'any', slug: 'weather', mode: 'live', limitsAcquiredAt: Date.now() } as const
  await recordUsage(redis, [{ call, verdict: { reach: 'answered' } }], 'one')
  await assertLives({ [keys.usageWritten('one')]: 5 * MINUTE })
})

it('the keys of asynchronous calls and their results live fifteen minutes from the end, and the keys of bodies a minute', async () => {
  const call = { id: 'one', accountId: 'any' }
  const head = { id: 'one', times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 } }
  const now = Date.now()
  const job = { ...call, deadline: now + MINUTE, limitsAcquiredAt: now, resultBytesMax: 1_000 } as CallJob
  await recordAsyncCall(redis, job, undefined)
  assert.equal(await startCall(redis, call), true)
  await assertLives({ [accountKeys.call('any', 'one')]: 16 * MINUTE, [accountKeys.started('any', 'one')]: 15 * MINUTE })
  await storeResult(redis, { ...call, bytesMax: 10_000 }, { head, body: Buffer.from('x') })
  const { call: callKey, result, results, resultBytes } = accountKeys
  const kept = [callKey('any', 'one'), result('any', 'one'), results('any'), resultBytes('any')]
  await assertLives(Object.fromEntries(kept.map((key) => [key, 15 * MINUTE])))
  const ending = { id: 'one', limitsAcquiredAt: now, refund: 'nothing', isAsync: true } as const
  await endCalls(redis, { accountId: 'any', mode: 'live' }, { calls: [ending] })
  await assertLives({ [accountKeys.ended('any', 'one')]: 60 * MINUTE })
  await storeBody(redis, call, Buffer.alloc(100_000))
  await assertLives({ [accountKeys.body('any', 'one')]: MINUTE, [accountKeys.bodies('any')]: MINUTE })
})
