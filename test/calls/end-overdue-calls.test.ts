import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { Worker } from 'bullmq'
import { endOverdueCalls } from '../../src/calls/end-overdue-calls.ts'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { readResult, startCall } from '../../src/queue/results.ts'
import { accountKeys, keys } from '../../src/redis/keys.ts'
import { openTestConsole } from '../support/console.ts'
import { until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'
import { OWN_FOLDER } from '../support/shop.ts'

const PAGE_JOBS = 100

/**
 * An account whose calls of one API are enqueued. A call is overdue if its fields say nothing else.
 */
async function open(t: TestContext) {
  const { context, stop } = await openTestConsole()
  t.after(stop)
  const { redis, queues, accountLimits } = context
  const accountId = randomUUID()
  const subject = { accountId, mode: 'live' as const, version: 'v' }
  await redis.set(accountKeys.version(accountId), 'v')
  const queue = queues.of('currency')
  const enqueue = async (fields: Partial<CallJob>): Promise<string> => {
    const id = `call_${randomUUID().replaceAll('-', '')}`
    const limits = await accountLimits.acquire({
      ...{ subject, tier: 'pro', callId: id, leaseMs: 900_000, loadUsed: async () => 0 },
      plan: { perMinute: 1_000, inFlight: 1_000, perMonth: 1_000 },
    })
    const call: CallJob = {
      ...{ v: 1, id, accountId, mode: 'live', slug: 'currency', endpoint: '/latest', parameters: {}, extra: [] },
      ...{ raw: false, isAsync: true, replyTo: 'x', limitsAcquiredAt: limits.now, deadline: limits.now - 60_000 },
      ...fields,
    }
    await queues.enqueue({ call, mayShareJob: false })
    return id
  }
  return { context, redis, queue, accountId, enqueue }
}

test('an asynchronous call that no worker takes by its deadline gets a result, costs nothing, and leaves Redis', async (t) => {
  const { context, redis, queue, accountId, enqueue } = await open(t)
  const overdue = await Promise.all(Array.from({ length: PAGE_JOBS + 1 }, () => enqueue({})))
  const staying = await Promise.all([enqueue({ deadline: Date.now() + 600_000 }), enqueue({ isAsync: false })])

  for (const _look of ['first', 'second']) {
    await endOverdueCalls(context, queue)
    const left = (await queue.getWaiting()).map(({ id }) => id)
    assert.deepEqual(left.sort(), [...staying].sort())
    for (const id of overdue) {
      assert.equal((await readResult(redis, { id, accountId }))?.head.code, 'DEADLINE_EXCEEDED')
    }
    assert.deepEqual(
      (await redis.zrange(accountKeys.inFlight(accountId, 'live'), '0', '-1')).sort(),
      [...staying].sort(),
    )
    const month = accountKeys.month(accountId, new Date().toISOString().slice(0, 7))
    assert.equal(Number(await redis.get(month)), staying.length)
    const usage = Object.entries(await redis.hgetall(keys.usagePending))
    assert.deepEqual(
      usage.map(([field, calls]) => [field.includes('|503|'), Number(calls)]),
      [[true, overdue.length]],
    )
  }
  const [counted] = (await context.telemetry.metrics.calls.get()).values
  assert.deepEqual([counted?.labels.code, counted?.value], ['DEADLINE_EXCEEDED', overdue.length])
})

test('an asynchronous call whose worker was lost gets a result after its deadline, whether or not another worker runs', async (t) => {
  const { context, redis, queue, accountId, enqueue } = await open(t)
  const stalledInterval = 50
  const options = { connection: redis, prefix: LANE.prefix, autorun: false, stalledInterval }
  const worker = new Worker(LANE.name, undefined, options)
  t.after(() => worker.close())
  await worker.waitUntilReady()
  const codes = (ids: string[]) =>
    Promise.all(ids.map(async (id) => (await readResult(redis, { id, accountId }))?.head.code))
  const take = async (): Promise<string> => {
    const id = await enqueue({})
    assert.equal((await worker.getNextJob('token', { block: false }))?.id, id)
    return id
  }
  const loseLock = (id: string) => redis.del(queue.toKey(`${id}:lock`))
  const returned = await take()
  const [running, lost] = [await take(), await take()]
  await loseLock(returned)
  // The effect of a worker that ends another worker's job, after it has seen the job without a
  // lock.
  await worker.startStalledCheckTimer()
  await until(async () => (await queue.getJobState(returned)) === 'waiting')
  await worker.close()
  await loseLock(lost)

  await endOverdueCalls(context, queue)
  assert.deepEqual(await codes([returned, lost, running]), ['DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED', undefined])
  assert.deepEqual(
    (await queue.getActive()).map(({ id }) => id),
    [running],
  )
})

test('an asynchronous write ends as OUTCOME_UNKNOWN if a lost worker had begun it, and as unsent if no worker had begun it', async (t) => {
  const { context, redis, queue, accountId, enqueue } = await open(t)
  const catalog = await loadCatalog(new Map(), { isOperatorNamed: false, ownFolder: OWN_FOLDER })
  const write = { slug: 'orders', endpoint: '/create-order' }
  const [begun, waiting, read] = [
    await enqueue(write),
    await enqueue(write),
    await enqueue({ ...write, endpoint: '/list-orders' }),
  ]
  for (const id of [begun, read]) await startCall(redis, { id, accountId })

  await endOverdueCalls({ ...context, catalog }, queue)
  const codes = [begun, waiting, read].map(async (id) => (await readResult(redis, { id, accountId }))?.head.code)
  assert.deepEqual(await Promise.all(codes), ['OUTCOME_UNKNOWN', 'DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED'])
})
