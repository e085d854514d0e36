import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it, mock } from 'node:test'
import { AccountLimits, type LimitSubject } from '../../src/limits/account-limits.ts'
import { CallEndBatcher } from '../../src/limits/call-end-batcher.ts'
import { endCalls } from '../../src/limits/end-calls.ts'
import { createLog } from '../../src/log.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()
const log = createLog({ level: 'silent', pretty: false }, 'test')

const job: CallJob = {
  ...{ v: 1, id: '', accountId: '', mode: 'live', slug: 'weather', endpoint: '/current', parameters: {}, extra: [] },
  ...{ raw: false, isAsync: false, replyTo: '', limitsAcquiredAt: 0, deadline: 0 },
}

/** An account that has taken what these calls need, and the API node that took it. */
async function open({ calls, isBatch = false, now }: { calls: number; isBatch?: boolean; now?: () => number }) {
  const account: LimitSubject = { accountId: randomUUID(), mode: 'live', version: 'v' }
  const { accountId } = account
  await redis.set(accountKeys.version(accountId), 'v')
  const callIds = Array.from({ length: calls }, (_, index) => `call_${index}`)
  const limits = { perMinute: 10, inFlight: 2, perMonth: 100 }
  const times = { leaseMs: 60_000, now }
  const query = { subject: account, tier: 'pro' as const, plan: limits, ...times, loadUsed: async () => 0 }
  let at = 0
  if (isBatch) {
    const grant = await new AccountLimits(redis).acquireBatch({ ...query, callIds, take: 'all' })
    at = grant.state.now
  } else {
    for (const callId of callIds) {
      const state = await new AccountLimits(redis).acquire({ ...query, callId })
      at = state.now
    }
  }
  const inFlight = () => redis.zcard(accountKeys.inFlight(accountId, 'live'))
  const used = async () => [
    await redis.zcard(accountKeys.minute(accountId, 'live')),
    await inFlight(),
    Number(await redis.get(accountKeys.month(accountId, new Date(at).toISOString().slice(0, 7)))),
  ]
  return { account, callIds, at, inFlight, used, node: new CallEndBatcher(redis, log) }
}

it('an acquisition without acknowledgement is undone when its node ends, before its next try', async () => {
  const { account, callIds, at, used, node } = await open({ calls: 1 })
  assert.deepEqual(await used(), [1, 1, 1])
  node.compensate({ account, callIds, at })
  await node.close()
  assert.deepEqual(await used(), [0, 0, 0])
})

it('the calls of a batch whose acquisition had no acknowledgement cost nothing, including calls that waited for a lease', async () => {
  const { account, callIds, at, used, node } = await open({ calls: 5, isBatch: true })
  assert.deepEqual(await used(), [5, 2, 5])
  node.compensate({ account, callIds, at })
  await node.close()
  assert.deepEqual(await used(), [0, 0, 0])
})

it('an acquisition without acknowledgement is undone in its own month, even if its node notices that in the next month', async () => {
  const midnight = Date.UTC(2031, 1)
  for (const isBatch of [false, true]) {
    const { account, callIds, used, node } = await open({ calls: isBatch ? 2 : 1, isBatch, now: () => midnight - 100 })
    assert.equal((await used())[2], callIds.length)
    const nextMonth = accountKeys.month(account.accountId, '2031-02')
    await redis.set(nextMonth, 7)
    node.compensate({ account, callIds, at: midnight + 900 })
    await node.close()
    assert.deepEqual([await used(), await redis.get(nextMonth)], [[0, 0, 0], '7'])
  }
})

it("the next call of an account finds none in flight that has ended, when the node's clock is in another month", async (t) => {
  const { account, callIds, at, inFlight, node } = await open({ calls: 2 })
  t.after(() => mock.timers.reset())
  // Redis knows the script.
  await endCalls(redis, account, { calls: [] })
  mock.timers.enable({ apis: ['Date'], now: at + 40 * 86_400_000 })
  for (const id of callIds) void node.end({ ...job, ...account, id, limitsAcquiredAt: at }, { reach: 'answered' })
  node.flush(account)
  assert.equal(await inFlight(), 0)
  mock.timers.reset()
  await node.close()
})
