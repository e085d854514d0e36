import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { GatewayError } from '../../src/errors.ts'
import { recordAsyncCall } from '../../src/queue/async-call.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { storeBody } from '../../src/queue/reply-body.ts'
import { readResult, startCall, storeResult } from '../../src/queue/results.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { redisOfThisFile } from '../support/services.ts'

const { redis } = await redisOfThisFile()

const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 }
const replyOf = (id: string, text = '') => ({ head: { id, times }, body: Buffer.from(text) })
const store = async (accountId: string, id: string, bytesMax?: number, text = 'x'.repeat(1_000)) =>
  (await storeResult(redis, { id, accountId, bytesMax }, replyOf(id, text))).kind

/** Makes the kept results of an account end some seconds ago. */
async function endResults(accountId: string): Promise<void> {
  const index = accountKeys.results(accountId)
  for (const member of await redis.zrange(index, '0', '-1')) await redis.zadd(index, Date.now() - 5_000, member)
}

it('the first stored outcome of a call is never replaced', async () => {
  assert.equal(await store('first', 'call-1', undefined, 'one'), 'kept')
  assert.equal(await store('first', 'call-1', undefined, 'two'), 'earlier')
  assert.equal((await readResult(redis, { id: 'call-1', accountId: 'first' }))?.body.toString(), 'one')
})

it('the outcome of a call and the start of its run see each other, whichever is stored first', async () => {
  const [started, cancelled] = ['call-1', 'call-2'].map((id) => ({ id, accountId: 'starts' }))
  assert.ok(started && cancelled)
  assert.equal(await startCall(redis, started), true)
  assert.deepEqual(await storeResult(redis, started, replyOf('call-1')), { kind: 'kept', isStarted: true })
  assert.deepEqual(await storeResult(redis, cancelled, replyOf('call-2')), { kind: 'kept', isStarted: false })
  assert.deepEqual([await startCall(redis, started), await startCall(redis, cancelled)], [false, false])
})

it('results of an account take at most their bytes, which ended results give back', async () => {
  // A result of a thousand bytes takes about three thousand with what is remembered of its call.
  assert.equal(await store('full', 'call-1', 7_000), 'kept')
  assert.equal(await store('full', 'call-2', 7_000), 'kept')
  const total = Number(await redis.get(accountKeys.resultBytes('full')))
  assert.ok(total > 6_000 && total < 7_000, `${total}`)
  assert.equal(await store('full', 'call-3', 7_000), 'full')
  await endResults('full')
  assert.equal(await store('full', 'call-3', 7_000), 'kept')
  assert.ok(Number(await redis.get(accountKeys.resultBytes('full'))) < total)
})

it('an asynchronous call is refused while the results of its account take all their bytes', async () => {
  await store('busy', 'call-1')
  const job = {
    id: 'call-2',
    accountId: 'busy',
    deadline: Date.now() + 30_000,
    limitsAcquiredAt: Date.now(),
  } as CallJob
  const taken = Number(await redis.get(accountKeys.resultBytes('busy')))
  const record = (resultBytesMax: number) => recordAsyncCall(redis, { ...job, resultBytesMax }, undefined)
  await assert.rejects(record(taken), { code: 'RESULT_STORAGE_FULL' })
  assert.equal(await redis.exists(accountKeys.call('busy', 'call-2')), 0)
  await record(taken + 1)
  assert.equal(await redis.exists(accountKeys.call('busy', 'call-2')), 1)
  await endResults('busy')
  await record(taken)
})

it('bodies that no node has fetched share the room of their account, and a single body always fits', async () => {
  const body = (megabytes: number) => Buffer.alloc(megabytes * 1024 * 1024, 'x')
  const keep = (id: string, megabytes: number) => storeBody(redis, { id, accountId: 'bodies' }, body(megabytes))
  assert.ok(await keep('call-1', 20))
  await assert.rejects(keep('call-2', 1), (error: GatewayError) => {
    const { retryAfterMs = 0 } = error.details
    // The streams of a node that died end after a minute.
    return error.code === 'OVERLOADED' && retryAfterMs > 30_000 && retryAfterMs <= 60_000
  })
  // If a second run of the same call writes a result, it replaces the first.
  assert.ok(await keep('call-1', 20))
  await redis.del(accountKeys.bodies('bodies'))
  assert.ok(await keep('call-3', 10))
  assert.ok(await keep('call-4', 6))
  await assert.rejects(keep('call-5', 1))
})
