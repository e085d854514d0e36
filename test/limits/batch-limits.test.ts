import assert from 'node:assert/strict'
import { it } from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { AccountLimits, type BatchGrant, type LimitSubject } from '../../src/limits/account-limits.ts'
import { endCalls } from '../../src/limits/end-calls.ts'
import type { LimitState } from '../../src/limits/limit-state.ts'
import type { Refund } from '../../src/queue/verdict.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'

const LEASE_MS = 60_000

const { redis } = await redisOfThisFile()
const accountLimits = new AccountLimits(redis)

let accounts = 0

/** An account with these limits, what it takes and what it has used. */
async function createAccount(
  limits: { perMinute: number; inFlight: number; perMonth: number },
  credential?: LimitSubject['allowance'],
) {
  accounts += 1
  const subject: LimitSubject = { accountId: `batch-${accounts}`, mode: 'live', version: 'v', allowance: credential }
  await redis.set(accountKeys.version(subject.accountId), 'v')
  const reading = {
    subject,
    tier: 'developer' as const,
    plan: { ...limits, resultMegabytes: 1 },
    leaseMs: LEASE_MS,
    loadUsed: async () => 0,
  }
  const at = Date.now()
  const grantOf = async (take: 'all' | 'fit', callIds: string[]): Promise<BatchGrant> => {
    const grant = await accountLimits.acquireBatch({ ...reading, callIds, take })
    return grant
  }
  const used = ({ minute, inFlight, month, credential }: LimitState): number[] => [
    ...[minute.used, inFlight, month?.used ?? 0],
    ...(credential ? [credential.minute, credential.inFlight, credential.month].flatMap((own) => own?.used ?? []) : []),
  ]
  return {
    take: async (take: 'all' | 'fit', callIds: string[]): Promise<number[] | string> => {
      try {
        const { granted, leases, state } = await grantOf(take, callIds)
        return [granted, leases, ...used(state)]
      } catch (error) {
        if (error instanceof GatewayError) return error.code
        throw error
      }
    },
    /** These are the units of a batch that is refused. */
    retryAfterMs: async (take: 'all' | 'fit', callIds: string[]): Promise<number> => {
      const error: unknown = await grantOf(take, callIds).catch((thrown) => thrown)
      assert.ok(error instanceof GatewayError)
      return error.details.retryAfterMs ?? 0
    },
    refusedBy: async (callIds: string[]) => (await grantOf('fit', callIds)).refusedBy,
    end: async (...ended: { id: string; refund: Refund; next?: string }[]) => {
      const calls = ended.map(({ id, refund, next: callId }) => ({
        ...{ id, refund, limitsAcquiredAt: at, credentialId: credential?.id },
        ...(callId !== undefined && { next: { callId, leaseMs: LEASE_MS } }),
      }))
      return await endCalls(redis, subject, { calls })
    },
    used: async () => {
      const state = await accountLimits.read(reading)
      return used(state)
    },
  }
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `call-${index}`)

it('a batch of which all calls must fit takes the units of all or none, and a batch that may be cut takes the units that are left', async () => {
  const minute = await createAccount({ perMinute: 10, inFlight: 20, perMonth: 100 })
  assert.deepEqual(await minute.take('all', ids(6)), [6, 6, 6, 6, 6])
  assert.equal(await minute.take('all', ids(11).slice(6)), 'RATE_LIMIT_EXCEEDED')
  assert.deepEqual(await minute.used(), [6, 6, 6])
  assert.deepEqual(await minute.take('fit', ids(11).slice(6)), [4, 4, 10, 10, 10])
  assert.equal(await minute.take('fit', ['one-more']), 'RATE_LIMIT_EXCEEDED')

  const month = await createAccount({ perMinute: 100, inFlight: 20, perMonth: 3 })
  assert.equal(await month.take('all', ids(4)), 'MONTHLY_QUOTA_EXCEEDED')
  assert.deepEqual(await month.take('fit', ids(4)), [3, 3, 3, 3, 3])
})

it('a batch of which all calls must fit comes again when they fit, and a batch that may be cut when one call fits', async () => {
  const account = await createAccount({ perMinute: 10, inFlight: 20, perMonth: 100 })
  await account.take('all', ids(4))
  // Those four were made half a minute ago.
  const log = accountKeys.minute(`batch-${accounts}`, 'live')
  for (const id of ids(4)) await redis.zincrby(log, '-30000000', id)
  await account.take('all', ids(10).slice(4))
  const isAbout = (ms: number, seconds: number) => assert.ok(Math.abs(ms - seconds * 1_000) < 10_000, `${ms} ms`)
  isAbout(await account.retryAfterMs('all', ids(14).slice(10)), 30)
  isAbout(await account.retryAfterMs('all', ids(15).slice(10)), 60)
  for (const count of [1, 5, 11, 100]) isAbout(await account.retryAfterMs('fit', ids(10 + count).slice(10)), 30)
})

it('a batch that may be cut says which limit its other calls did not fit into', async () => {
  const wide = { perMinute: 100, inFlight: 20, perMonth: 100 }
  const none = { id: 'key', perMinute: null, perMonth: null, inFlight: null }
  const refusedBy = async (...account: Parameters<typeof createAccount>) =>
    await (await createAccount(...account)).refusedBy(ids(4))
  assert.equal(await refusedBy(wide), 'ok')
  assert.equal(await refusedBy({ ...wide, perMinute: 3 }), 'minute')
  assert.equal(await refusedBy({ ...wide, perMonth: 3 }), 'month')
  assert.equal(await refusedBy(wide, none), 'ok')
  assert.equal(await refusedBy(wide, { ...none, perMonth: 3 }), 'credential-month')
  assert.equal(await refusedBy(wide, { ...none, perMinute: 3 }), 'credential-minute')
  assert.equal(await refusedBy(wide, { ...none, inFlight: 3 }), 'ok', 'the others wait for a lease')
})

it('a batch has as many calls in flight as the plan has left, and hands each lease to the next call once, for its key too', async () => {
  const key = { id: 'key', perMinute: null, perMonth: null, inFlight: 3 }
  const account = await createAccount({ perMinute: 10, inFlight: 3, perMonth: 100 }, key)
  assert.deepEqual(await account.take('all', ['other']), [1, 1, 1, 1, 1, 1])
  assert.deepEqual(await account.take('all', ids(4)), [4, 2, 5, 3, 5, 3])
  const ended = [
    { id: 'call-0', refund: 'nothing', next: 'call-2' },
    { id: 'call-1', refund: 'month' },
  ] as const
  // If a node heard no answer and writes the refund again, it has no further effect.
  for (let times = 0; times < 2; times += 1) {
    await account.end(...ended)
    assert.deepEqual(await account.used(), [5, 2, 4, 2])
  }
})

it('a step that hands a lease on says which version the rights of its account have, so that its caller notices a change', async () => {
  const account = await createAccount({ perMinute: 10, inFlight: 1, perMonth: 100 })
  await account.take('all', ids(2))
  const key = accountKeys.version(`batch-${accounts}`)
  const version = await redis.get(key)
  const step = { id: 'call-0', refund: 'nothing', next: 'call-1' } as const
  assert.deepEqual(await account.end(step), { ended: 1, version })
  await redis.set(key, 'another')
  assert.deepEqual(await account.end(step), { ended: 0, version: 'another' })
  await redis.del(key)
  assert.deepEqual(await account.end(step), { ended: 0, version: '' })
})

it('a call of a batch that is not made gives back its minute and its month, once', async () => {
  const account = await createAccount({ perMinute: 10, inFlight: 2, perMonth: 100 })
  await account.take('all', ids(3))
  for (const [id, left] of [
    ['call-2', [2, 2, 2]],
    ['call-0', [1, 1, 1]],
  ] as const) {
    for (let times = 0; times < 2; times += 1) {
      await account.end({ id, refund: 'all' })
      assert.deepEqual(await account.used(), left)
    }
  }
})

it('a batch of a credential with limits counts for it too, and gives back there what it gives back to the account', async () => {
  const limits = { id: 'key', perMinute: 9, perMonth: 5, inFlight: 2 }
  const account = await createAccount({ perMinute: 10, inFlight: 3, perMonth: 100 }, limits)
  assert.deepEqual(await account.take('all', ids(4)), [4, 2, 4, 2, 4, 4, 2, 4])
  await account.end(
    { id: 'call-0', refund: 'month', next: 'call-2' },
    { id: 'call-1', refund: 'all' },
    { id: 'call-3', refund: 'all' },
  )
  assert.deepEqual(await account.used(), [2, 1, 1, 2, 1, 1])
  await account.end({ id: 'call-2', refund: 'nothing' })
  assert.deepEqual(await account.used(), [2, 0, 1, 2, 0, 1])
  assert.equal(await account.take('all', ids(9).slice(4)), 'MONTHLY_QUOTA_EXCEEDED')
})
