import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { forecastAndJoin, waitEntryOf } from '../../src/admission/forecast.ts'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { withdrawCall } from '../../src/calls/withdraw-call.ts'
import { UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import type { GatewayError } from '../../src/errors.ts'
import type { CallJob } from '../../src/queue/call-job.ts'
import { SHARED_BUCKET, waitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { channels, upstreamKeys } from '../../src/redis/keys.ts'
import { isUnacknowledged } from '../../src/redis/redis-error.ts'
import { openTestConsole } from '../support/console.ts'
import { until } from '../support/gateway.ts'
import { connectThroughProxy } from '../support/proxied-redis.ts'

/** A call of a new account. */
function callOf({ slug, endpoints }: Api, { isAsync, timeMs }: { isAsync: boolean; timeMs: number }) {
  const endpoint = [...endpoints.values()][0] ?? assert.fail()
  const [accountId, limitsAcquiredAt] = [randomUUID(), Date.now()]
  const job: CallJob = {
    ...{ v: 1, id: `call_${randomUUID().replaceAll('-', '')}`, accountId, mode: 'live', slug, extra: [] },
    ...{ endpoint: endpoint.path, parameters: {}, raw: false, isAsync, replyTo: 'x', limitsAcquiredAt },
    deadline: limitsAcquiredAt + timeMs,
  }
  return { endpoint, job }
}

test('a call that joined the wait queue without an acknowledgement of Redis leaves it again', async (t) => {
  const { context, services, stop } = await openTestConsole()
  t.after(stop)
  const { redis, proxy } = await connectThroughProxy(t, services.redisUrl, 'producer')
  const { catalog, db } = context
  const api = catalog.get('news') ?? assert.fail()
  const { endpoint, job } = callOf(api, { isAsync: true, timeMs: 600_000 })
  const { accountId } = job
  const direct = context.caps.of(api, SHARED_BUCKET)
  const deps = { ...context, redis, caps: new UpstreamCaps({ redis, db, catalog }) }
  // The test reads the cap's past before the answers of Redis begin to lag.
  await direct.joinWaitQueue(
    { id: 'call_a', accountId, isAsync: true, weight: 1, slug: 'news', bucket: SHARED_BUCKET },
    Date.now() + 600_000,
  )
  const waiting = async () => (await direct.queuedMembers(10)).length
  assert.equal(await waiting(), 1)
  proxy.delay(150)
  const joining = assert.rejects(forecastAndJoin(deps, { api, endpoint, job }), isUnacknowledged)
  await until(async () => (await waiting()) === 2)
  proxy.reset()
  proxy.heal()
  await joining
  await until(async () => (await waiting()) === 1)
})

test('a call that an open breaker refuses learns when its cap does not refuse it either', async (t) => {
  const { context, stop } = await openTestConsole()
  t.after(stop)
  const { catalog, caps, redis, health } = context
  const api = catalog.get('trivia') ?? assert.fail()
  const cap = caps.of(api, SHARED_BUCKET)
  // Of this cap, one request may start in five seconds.
  for (let count = 0; count < 20; count += 1) {
    const { job } = callOf(api, { isAsync: true, timeMs: 600_000 })
    await cap.joinWaitQueue(waitQueueEntry(job, {}), job.deadline)
  }
  await redis.hset(upstreamKeys.health('trivia'), { state: 'Down', open: 1, trialAt: Date.now() + 30_000 })
  await redis.publish(channels.health, 'trivia')
  await until(() => health.breakerWaitMs('trivia') !== undefined)
  const { endpoint, job } = callOf(api, { isAsync: false, timeMs: 30_000 })
  await assert.rejects(forecastAndJoin(context, { api, endpoint, job }), ({ code, details }: GatewayError) => {
    assert.equal(code, 'UPSTREAM_UNAVAILABLE')
    assert.ok((details.retryAfterMs ?? 0) > 60_000, String(details.retryAfterMs))
    return true
  })
})

test('a call that is to share an answer is withdrawn with the place that its worker may have joined for', async (t) => {
  const { context, stop } = await openTestConsole()
  t.after(stop)
  const { catalog, caps, queues, redis } = context
  const api = catalog.get('encyclopedia') ?? assert.fail()
  const endpoint = [...api.endpoints.values()][0] ?? assert.fail()
  const job: CallJob = {
    ...{ v: 1, id: `call_${randomUUID().replaceAll('-', '')}`, accountId: randomUUID(), mode: 'live', extra: [] },
    ...{ slug: api.slug, endpoint: endpoint.path, parameters: { title: 'Earth' }, raw: false, isAsync: false },
    ...{ replyTo: 'x', limitsAcquiredAt: Date.now(), deadline: Date.now() + 60_000 },
  }
  const { coalesced } = cacheKeys(endpoint.declaration, job) ?? assert.fail()
  await redis.set(coalesced, 'other|call')
  const { ofJob, keys } = await forecastAndJoin(context, { api, endpoint, job })
  assert.deepEqual(ofJob, {})
  // First the other call goes, then the worker and the caller.
  await redis.del(coalesced)
  const cap = caps.of(api, SHARED_BUCKET)
  await cap.joinWaitQueue(waitQueueEntry(job, { bucket: SHARED_BUCKET }), job.deadline)
  assert.equal((await cap.read()).ahead, 1)
  const waitEntry = waitEntryOf(job, keys)
  await withdrawCall({ caps, queues, redis }, { id: job.id, slug: api.slug, waitEntry, jobId: undefined })
  assert.equal((await cap.read()).ahead, 0)
})
