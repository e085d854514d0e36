import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { forecastAndJoin } from '../../src/admission/forecast.ts'
import { SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { isUnacknowledged } from '../../src/redis/redis-error.ts'
import { openTestConsole } from '../support/console.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'

test('a call that joined the wait queue without an acknowledgement of Redis leaves it again', async (t) => {
  const { context, services, stop } = await openTestConsole()
  t.after(stop)
  const { redis, proxy } = await connectThroughProxy(t, services.redisUrl, 'producer')
  const { catalog, db } = context
  const api = catalog.get('news') ?? assert.fail()
  const endpoint = [...api.endpoints.values()][0] ?? assert.fail()
  const [accountId, enqueuedAt] = [randomUUID(), Date.now()]
  const job: CallJob = {
    ...{ v: 1, id: `call_${randomUUID().replaceAll('-', '')}`, accountId, mode: 'live', slug: 'news', extra: [] },
    ...{ endpoint: endpoint.path, parameters: {}, raw: false, isAsync: true, replyTo: 'x', enqueuedAt },
    deadline: enqueuedAt + 600_000,
  }
  const direct = context.caps.of(api, SHARED_BUCKET)
  const deps = { ...context, redis, caps: new UpstreamCaps({ redis, db, catalog }) }
  // The cap's past is read before the answers of Redis begin to lag.
  await direct.joinWaitQueue(
    { callId: 'call_a', accountId, isAsync: true, weight: 1, slug: 'news', bucket: SHARED_BUCKET },
    Date.now() + 600_000,
  )
  const waiting = async () => (await direct.waitingMembers(10)).length
  assert.equal(await waiting(), 1)
  proxy.delay(150)
  const joining = assert.rejects(forecastAndJoin(deps, { api, endpoint, job, weight: 1 }), isUnacknowledged)
  await until(async () => (await waiting()) === 2)
  proxy.reset()
  proxy.heal()
  await joining
  await until(async () => (await waiting()) === 1)
})
