import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { createJob } from '../../src/admission/admit.ts'
import type { AdmittedBatch } from '../../src/admission/admit-batch.ts'
import { errorOf } from '../../src/calls/end-call.ts'
import { CallerLeftError } from '../../src/calls/pending-call.ts'
import { runBatch } from '../../src/calls/run-batch.ts'
import { loadProcessConfig } from '../../src/config.ts'
import { closeContext, openContext } from '../../src/context.ts'
import { createLog } from '../../src/log.ts'
import { type CallJob, parseCalls } from '../../src/queue/call-job.ts'
import type { CallToQueue } from '../../src/queue/call-queue.ts'
import { sendReply } from '../../src/queue/reply.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { accountKeys, capKeys } from '../../src/redis/keys.ts'
import { startTcpProxy } from '../chaos/tcp-proxy.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { createPrincipal } from '../support/principal.ts'
import { startServices } from '../support/services.ts'

/**
 * How much the clock of a node may differ from Redis' clock, milliseconds: half of the slowest
 * answer from which the node reads the clock, 250 ms.
 */
const CLOCK_ERROR_MS = 125

/** An API node without workers, whose Redis is behind a proxy. */
async function openNode(t: TestContext) {
  const services = await startServices()
  const url = new URL(services.redisUrl)
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: Number(url.port) })
  url.port = String(proxy.port)
  const config = loadProcessConfig('web', {
    ...testSecrets(),
    ...{ DATABASE_URL: services.databaseUrl, REDIS_URL: url.href, DATA_DIR: services.folder, PORT: '0' },
    UPSTREAM_CURRENCY_CAPS: 'concurrency=50,1000/1',
  })
  const context = await openContext(config, createLog({ level: 'silent', pretty: false }, 'test'), 'web')
  const redis = new Redis(services.redisUrl)
  t.after(async () => {
    await closeContext(context)
    redis.disconnect()
    await proxy.close()
    await services.stop()
  })
  await until(() => context.redis.status === 'ready')
  return { context, proxy, redis }
}

type Node = Awaited<ReturnType<typeof openNode>>

/**
 * A batch of a new account, which has taken the units of its calls and as many leases as it may
 * have in flight.
 */
async function admitBatch(
  { context, redis }: Node,
  { calls, inFlight, timeoutMs }: { calls: number; inFlight: number; timeoutMs: number },
) {
  const principal = await createPrincipal(redis)
  const { accountId } = principal
  const api = context.catalog.get('currency') ?? assert.fail()
  const endpoint = api.endpoints.get('/latest') ?? assert.fail()
  const callIds = Array.from({ length: calls }, () => `call_${randomUUID().replaceAll('-', '')}`)
  const leaseMs = 60_000
  const used = async () => [
    await redis.zcard(accountKeys.minute(accountId, 'live')),
    await redis.zcard(accountKeys.inFlight(accountId, 'live')),
    Number(await redis.get(accountKeys.month(accountId, new Date().toISOString().slice(0, 7)))),
  ]
  const grant = await context.accountLimits.acquireBatch({
    ...{ subject: principal, tier: 'pro', callIds, take: 'all', leaseMs, loadUsed: async () => 0 },
    plan: { perMinute: 100, inFlight, perMonth: 100 },
  })
  const checked = { api, endpoint, providerKey: undefined, parameters: {}, extra: [], raw: false, scenario: undefined }
  const units = callIds.map((id, index) => ({
    job: createJob(context, { principal, checked, id, now: grant.state.now, timeoutMs }),
    checked,
    indexes: [index],
  }))
  const batch: AdmittedBatch = {
    ...{
      principal,
      units,
      grant,
      timeoutMs,
      leaseMs,
      refused: new Map(),
      preference: { waitMs: undefined, applied: undefined },
    },
  }
  return { batch, used }
}

const queuedCalls = async ({ context }: Node): Promise<CallJob[]> =>
  (await context.queues.of('currency').getJobs()).flatMap(({ data }) => parseCalls(data))

test('calls of a batch that were not made because Redis went away cost nothing when Redis is back', async (t) => {
  const node = await openNode(t)
  const { context, proxy, redis } = node
  const { batch, used } = await admitBatch(node, { calls: 6, inFlight: 2, timeoutMs: 500 })
  assert.deepEqual(await used(), [6, 2, 6])
  const codes: string[] = []
  const running = runBatch(context, batch, {
    origin: { requestId: 'req_test', via: 'batch' },
    headers: {},
    ip: '127.0.0.1',
    authenticateAgain: () => assert.fail('the account has not changed'),
    left: new AbortController().signal,
    emit: (_unit, outcome) => codes.push(errorOf(outcome)?.code ?? 'answered'),
  })
  await until(async () => (await queuedCalls(node)).length === 2, 5_000)
  const connections = async () => /^connected_clients:(\d+)/m.exec(await redis.info('clients'))?.[1]
  const before = await connections()
  proxy.cut()
  assert.equal(await running, 0)
  assert.deepEqual(codes.length, 6)
  const counted = (await context.telemetry.metrics.calls.get()).values
  assert.equal(
    counted.reduce((sum, { value }) => sum + value, 0),
    6,
    'operators see those that were not made too',
  )
  assert.deepEqual(await used(), [6, 2, 6])
  proxy.heal()
  // Two calls were queued, and count for the minute.
  await until(async () => (await used()).join() === '2,0,0', 15_000)
  // If a node ends while it connects, other rules apply.
  await until(async () => (await connections()) === before, 15_000)
})

test('a call of a batch that joined the wait queue and could not be queued leaves it when Redis is back', async (t) => {
  const node = await openNode(t)
  const { context, proxy } = node
  const { batch } = await admitBatch(node, { calls: 1, inFlight: 1, timeoutMs: 60_000 })
  const waiting = async () => await node.redis.zcard(capKeys.of('currency', SHARED_BUCKET, 'queue'))
  const queues = Object.assign(Object.create(context.queues), {
    enqueue: async (queued: CallToQueue) => {
      assert.equal(await waiting(), 1)
      proxy.cut()
      await until(() => context.redis.status !== 'ready')
      return await context.queues.enqueue(queued)
    },
  })
  const codes: string[] = []
  await runBatch({ ...context, queues }, batch, {
    origin: { requestId: 'req_test', via: 'batch' },
    headers: {},
    ip: '127.0.0.1',
    authenticateAgain: () => assert.fail('the account has not changed'),
    left: new AbortController().signal,
    emit: (_unit, outcome) => codes.push(errorOf(outcome)?.code ?? 'answered'),
  })
  assert.deepEqual(codes, ['DEPENDENCY_UNAVAILABLE'])
  proxy.heal()
  await until(async () => (await waiting()) === 0, 10_000)
})

test('how long a call of a batch waits for its upstream is measured from the time at which it is queued, not from the arrival of the batch', async (t) => {
  const node = await openNode(t)
  const { context } = node
  const { batch } = await admitBatch(node, { calls: 2, inFlight: 1, timeoutMs: 60_000 })
  const running = runBatch(context, batch, {
    origin: { requestId: 'req_test', via: 'batch' },
    headers: {},
    ip: '127.0.0.1',
    authenticateAgain: () => assert.fail('the account has not changed'),
    left: new AbortController().signal,
    emit: () => undefined,
  })
  const answer = async (id: string) => {
    await until(async () => (await queuedCalls(node)).some((call) => call.id === id))
    const call = (await queuedCalls(node)).find((each) => each.id === id) ?? assert.fail()
    await until(() => Date.now() > call.limitsAcquiredAt + 2 * CLOCK_ERROR_MS)
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 1 }
    await sendReply(context.redis, call, { head: { id, times }, body: Buffer.from('{}') })
    return call
  }
  const [first, second] = batch.units.map(({ job }) => job.id)
  const { limitsAcquiredAt, deadline } = await answer(first ?? '')
  const later = await answer(second ?? '')
  assert.equal(await running, 2)
  const apart = later.limitsAcquiredAt - limitsAcquiredAt
  assert.ok(apart > CLOCK_ERROR_MS, `${apart} ms`)
  assert.ok((later.admissionEndedAt ?? 0) >= later.limitsAcquiredAt)
  assert.equal(later.deadline, deadline)
})

test('a call of a batch whose caller leaves is counted as a call whose answer nobody read', async (t) => {
  const node = await openNode(t)
  const { context } = node
  const { batch } = await admitBatch(node, { calls: 1, inFlight: 1, timeoutMs: 60_000 })
  const left = new AbortController()
  const running = runBatch(context, batch, {
    origin: { requestId: 'req_test', via: 'batch' },
    headers: {},
    ip: '127.0.0.1',
    authenticateAgain: () => assert.fail('the account has not changed'),
    left: left.signal,
    emit: () => undefined,
  })
  await until(async () => (await queuedCalls(node)).length === 1)
  left.abort(new CallerLeftError())
  await running
  const counted = (await context.telemetry.metrics.calls.get()).values
  assert.deepEqual(
    counted.map(({ labels }) => [labels.code, labels.status]),
    [['CALL_CANCELLED', 499]],
  )
})
