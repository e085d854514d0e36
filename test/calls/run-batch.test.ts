import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { createJob } from '../../src/admission/admit.ts'
import type { AdmittedBatch } from '../../src/admission/admit-batch.ts'
import type { Principal } from '../../src/admission/authenticate.ts'
import { runBatch } from '../../src/calls/run-batch.ts'
import { loadProcessConfig } from '../../src/config.ts'
import { closeContext, openContext } from '../../src/context.ts'
import { migrate } from '../../src/db/migrate.ts'
import { STALE } from '../../src/limits/account-limits.ts'
import { acquireBatch } from '../../src/limits/batch-limits.ts'
import { createLog } from '../../src/log.ts'
import { parseCalls } from '../../src/queue/call-job.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { startTcpProxy } from '../chaos/tcp-proxy.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { startServices } from '../support/services.ts'

/** An API node without workers, whose Redis is behind a proxy. */
async function openNode(t: TestContext) {
  const services = await startServices()
  await migrate(services.databaseUrl)
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

test('calls of a batch that were not made because Redis went away cost nothing when it is back', async (t) => {
  const { context, proxy, redis } = await openNode(t)
  const accountId = randomUUID()
  const principal: Principal = {
    ...{ accountId, shareGroup: accountId, mode: 'live', tier: 'pro', version: 'v' },
    ...{ keyId: undefined, isTeamKey: false, providerKeys: new Map(), expiresAt: Number.POSITIVE_INFINITY },
    missing: undefined,
  }
  await redis.set(accountKeys.version(accountId), 'v')
  const api = context.catalog.get('currency') ?? assert.fail()
  const endpoint = api.endpoints.get('/latest') ?? assert.fail()
  const [callIds, timeoutMs, leaseMs] = [
    Array.from({ length: 6 }, () => `call_${randomUUID().replaceAll('-', '')}`),
    500,
    60_000,
  ]
  const used = async () => [
    await redis.zcard(accountKeys.minute(accountId, 'live')),
    await redis.zcard(accountKeys.inFlight(accountId, 'live')),
    Number(await redis.get(accountKeys.month(accountId, new Date().toISOString().slice(0, 7)))),
  ]
  const grant = await acquireBatch(context.redis, {
    ...{ subject: principal, tier: 'pro', callIds, take: 'all', leaseMs, loadMonthUsed: async () => 0 },
    limits: { perMinute: 100, inFlight: 2, perMonth: 100 },
  })
  assert.ok(grant !== STALE)
  assert.deepEqual(await used(), [6, 2, 6])
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
  const codes: string[] = []
  const running = runBatch(context, batch, {
    requestId: 'req_test',
    left: new AbortController().signal,
    emit: (_unit, outcome) => codes.push('error' in outcome ? outcome.error.code : 'answered'),
  })
  const queued = async () => (await context.queues.of('currency').getJobs()).flatMap(({ data }) => parseCalls(data))
  await until(async () => (await queued()).length === 2, 5_000)
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
  // Two were queued, and count for the minute.
  await until(async () => (await used()).join() === '2,0,0', 15_000)
  // A node that ends while it connects is another matter.
  await until(async () => (await connections()) === before, 15_000)
})
