import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { runCall } from '../../workers/jobs/run-call.ts'
import { until } from '../support/gateway.ts'
import { openWorkerParts } from '../support/worker-parts.ts'

test('a call that takes the lead when its answer has just been stored is a hit of the cache, with the age of the answer', async (t) => {
  const { deps, api, endpoint, callOf } = await openWorkerParts(t)
  const call = callOf()
  const keys = cacheKeys(endpoint, call, SHARED_BUCKET) ?? assert.fail()
  await deps.redis.set(keys.leader, 'leader in another process', 'PX', 60_000)
  const running = runCall(deps, call, {
    ...{ times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }, progress: {}, isSecondRun: false },
    remainingMs: () => call.deadline - deps.clock.now(),
    signal: AbortSignal.timeout(30_000),
  })
  await until(async () => (await deps.redis.exists(keys.followed)) === 1)
  const times = { storedAt: deps.clock.now(), freshMs: 100_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 }
  const origin = { slug: api.slug, hasUndeclared: false, owner: 'account' }
  assert.ok(await deps.cache.store(origin, keys.entry, { ...times, body: Buffer.from('{}') }))
  await deps.redis.del(keys.leader)
  const { cacheStatus = '', ageSeconds = -1, freshMs = 0 } = await running
  assert.match(cacheStatus, /^agw; hit; ttl=\d+$/)
  assert.ok(ageSeconds >= 0 && freshMs > 0 && freshMs <= 100_000, `${ageSeconds} s, fresh for ${freshMs} ms`)
})
