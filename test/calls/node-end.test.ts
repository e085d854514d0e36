import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { createJob } from '../../src/admission/admit.ts'
import { endCall } from '../../src/calls/end-call.ts'
import { awaitCall } from '../../src/calls/pending-call.ts'
import { loadProcessConfig } from '../../src/config.ts'
import { closeContext, openContext } from '../../src/context.ts'
import { createLog } from '../../src/log.ts'
import { accountKeys, keys } from '../../src/redis/keys.ts'
import { noteArrival } from '../../src/telemetry/record-call.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { createPrincipal } from '../support/principal.ts'
import { startServices } from '../support/services.ts'

test('a node that shuts down completes a call whose caller has just left although its worker has not replied', async (t) => {
  const services = await startServices()
  const config = loadProcessConfig('web', {
    ...testSecrets(),
    ...{ DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl, DATA_DIR: services.folder, PORT: '0' },
  })
  const redis = new Redis(services.redisUrl)
  const context = await openContext(config, createLog({ level: 'silent', pretty: false }, 'test'), 'web')
  t.after(async () => {
    redis.disconnect()
    await services.stop()
  })
  await until(() => context.redis.status === 'ready')
  const principal = await createPrincipal(redis)
  const { accountId } = principal
  const id = `call_${randomUUID().replaceAll('-', '')}`
  const limits = await context.accountLimits.acquire({
    ...{ subject: principal, tier: 'pro', callId: id, leaseMs: 40_000, loadUsed: async () => 0 },
    plan: { perMinute: 10, inFlight: 5, perMonth: 10 },
  })
  const api = context.catalog.get('currency') ?? assert.fail()
  const endpoint = api.endpoints.get('/latest') ?? assert.fail()
  const checked = { api, endpoint, providerKey: undefined, parameters: {}, extra: [], raw: false, scenario: undefined }
  const job = createJob(context, { principal, checked, id, now: limits.now, timeoutMs: 30_000 })
  const socket = new Socket()
  const queueing = { etaMs: 0, ofJob: {}, mustNotRepeat: false }
  const preference = { waitMs: undefined, applied: undefined }
  const url = '/v1/call/currency/latest'
  const arrival = noteArrival(context, { requestId: 'req_test', via: 'call' }, { url, headers: {} })
  const ended = awaitCall(context, { job, queueing, preference, arrival }, socket)
  const queue = context.queues.of('currency')
  await until(async () => (await queue.getJobState(id)) === 'waiting')
  // A worker has the job, and hangs.
  await redis.set(`${queue.toKey(id)}:lock`, 'token')
  socket.destroy()
  const end = await ended
  assert.equal(end.kind, 'failed')
  void endCall(context, { arrival, job, principal, end })
  await closeContext(context)
  assert.equal(await redis.zscore(accountKeys.inFlight(accountId, 'live'), id), null)
  const usage = Object.entries(await redis.hgetall(keys.usagePending))
  assert.deepEqual(
    usage.map(([field, calls]) => [field.includes(accountId), field.includes('499'), calls]),
    [[true, true, '1']],
    'a worker had it, so it is charged',
  )
})
