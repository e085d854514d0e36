import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { applySettings } from '../../src/catalog/catalog.ts'
import { encodeFrame } from '../../src/queue/frame.ts'
import { capKeys, channels, upstreamKeys } from '../../src/redis/keys.ts'
import { RequestCoalescer } from '../../workers/cache/request-coalescer.ts'
import { runCall } from '../../workers/jobs/run-call.ts'
import { until } from '../support/gateway.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { waiterOf } from '../support/waiter.ts'
import { openWorkerParts } from '../support/worker-parts.ts'

/** A call that follows `leader 1`, whose leader is in another process. */
async function follow(t: TestContext) {
  const { deps, api, endpoint, callOf } = await openWorkerParts(t)
  const call = callOf()
  const keys = cacheKeys(endpoint, call) ?? assert.fail()
  await deps.redis.set(keys.leader, 'leader 1', 'PX', 60_000)
  const running = runCall(deps, call, {
    ...{
      times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
      progress: { reach: 'unsent' as const },
      isSecondRun: false,
    },
    remainingMs: () => call.deadline - deps.clock.now(),
    signal: AbortSignal.timeout(30_000),
  })
  const follows = () => until(async () => (await deps.redis.exists(keys.followed)) === 1)
  /** An answer is stored, and the lead is free. */
  const endWithAnswer = async () => {
    const times = { storedAt: deps.clock.now(), freshMs: 100_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 }
    const origin = { slug: api.slug, hasUndeclared: false, owner: 'account' }
    assert.ok(await deps.cache.store(origin, keys.answer, { ...times, body: Buffer.from('{}') }))
    await deps.redis.del(keys.leader)
  }
  return { redis: deps.redis, keys, running, follows, endWithAnswer }
}

test('a call that takes the lead when its answer has just been stored is a hit of the cache, with the age of the answer', async (t) => {
  const { running, follows, endWithAnswer } = await follow(t)
  await follows()
  await endWithAnswer()
  const { cacheStatus = '', ageSeconds = -1, freshMs = 0 } = await running
  assert.match(cacheStatus, /^agw; hit; ttl=\d+$/)
  assert.ok(ageSeconds >= 0 && freshMs > 0 && freshMs <= 100_000, `${ageSeconds} s, fresh for ${freshMs} ms`)
})

test('a call that waited for a permit sends no request when its answer was stored meanwhile, and gives the permit back', async (t) => {
  const upstream = await startUpstreamServer()
  t.after(upstream.close)
  const { deps, api, endpoint, cap, callOf } = await openWorkerParts(t, upstream.environment('encyclopedia'))
  applySettings(api, { caps: { concurrency: 1, rates: [{ max: 10, seconds: 60 }] } })
  const other = [waiterOf('other|sent', 0)]
  const { granted } = await cap.acquire({ waiters: other, released: { ids: [], meanMs: 0 }, leaseMs: 60_000 })
  const call = callOf()
  const running = runCall(deps, call, {
    ...{
      times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
      progress: { reach: 'unsent' as const },
      isSecondRun: false,
    },
    remainingMs: () => call.deadline - deps.clock.now(),
    signal: AbortSignal.timeout(30_000),
  })
  const of = (name: 'waiters' | 'leases' | 'log') =>
    deps.redis.zrange(capKeys.of(api.slug, SHARED_BUCKET, name), '0', '-1')
  await until(async () => (await of('waiters')).length === 1)
  const { answer } = cacheKeys(endpoint, call) ?? assert.fail()
  const times = { storedAt: deps.clock.now(), freshMs: 100_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 }
  const origin = { slug: api.slug, hasUndeclared: false, owner: 'account' }
  assert.ok(await deps.cache.store(origin, answer, { ...times, body: Buffer.from('{}') }))
  const ids = [...granted.values()]
  await cap.release({ ids, meanMs: 1 })
  assert.match((await running).cacheStatus ?? '', /^agw; hit; ttl=\d+$/)
  await until(async () => (await of('leases')).length === 0)
  assert.deepEqual([upstream.arrivals.length, await of('log')], [0, ids])
})

test('a call with time left is not answered with the timeout of other calls, however many led before it whose own time was over', async (t) => {
  const { redis, keys, running, follows, endWithAnswer } = await follow(t)
  const early = running.then(({ outcome }) => assert.fail(`it got ${JSON.stringify(outcome)}`))
  early.catch(() => undefined)
  for (let leader = 1; leader <= 5; leader += 1) {
    await Promise.race([early, follows()])
    const head = { leader: `leader ${leader}`, failure: { code: 'UPSTREAM_TIMEOUT', isCutShort: true } }
    const ended = redis.multi().set(keys.outcome, encodeFrame(head, Buffer.alloc(0)), 'PX', 60_000)
    await ended
      .set(keys.leader, `leader ${leader + 1}`, 'PX', 60_000)
      .del(keys.followed)
      .exec()
  }
  await Promise.race([early, follows()])
  await endWithAnswer()
  assert.match((await running).cacheStatus ?? '', /^agw; hit; /)
})

test('a call that shares the refusal of other calls reads nothing of the share of their accounts', async (t) => {
  const { redis, keys, running, follows } = await follow(t)
  const message = 'You have used your fair share of this API for now. Other accounts are waiting for it.'
  for (let leader = 1; leader <= 3; leader += 1) {
    await follows()
    const failure = { code: 'UPSTREAM_CAP_EXHAUSTED', message, retryAfterMs: 5_000, reach: 'refused' }
    const ended = redis.multi().set(keys.outcome, encodeFrame({ leader: `leader ${leader}`, failure }, Buffer.alloc(0)))
    await ended
      .set(keys.leader, `leader ${leader + 1}`, 'PX', 60_000)
      .del(keys.followed)
      .exec()
  }
  const { outcome } = await running
  assert.deepEqual(outcome, { code: 'UPSTREAM_CAP_EXHAUSTED', retryAfterMs: 5_000, reach: 'refused' })
})

test('calls that share a request which was never sent say why, and not that the upstream failed', async (t) => {
  const { deps, api, endpoint, cap, callOf } = await openWorkerParts(t)
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const waiters = [waiterOf('other|sent', 0)]
  await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  const keys = cacheKeys(endpoint, callOf()) ?? assert.fail()
  const stale = { storedAt: deps.clock.now() - 2_000, freshMs: 1_000, staleWhileRevalidateMs: 0 }
  const origin = { slug: api.slug, hasUndeclared: false, owner: 'account' }
  await deps.cache.store(origin, keys.answer, { ...stale, staleIfErrorMs: 600_000, body: Buffer.from('{}') })
  const start = (coalescer = deps.coalescer) => {
    const call = callOf({ timeMs: 120_000 })
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
    const remainingMs = () => call.deadline - deps.clock.now()
    const signal = AbortSignal.timeout(30_000)
    return runCall({ ...deps, coalescer }, call, {
      times,
      progress: { reach: 'unsent' as const },
      isSecondRun: false,
      remainingMs,
      signal,
    })
  }
  const leading = start()
  await until(async () => (await deps.redis.zcard(capKeys.of(api.slug, SHARED_BUCKET, 'queue'))) === 1)
  const following = [start(), start(new RequestCoalescer(deps.redis))]
  await until(async () => (await deps.redis.exists(keys.followed)) === 1)
  const open = { state: 'Down', open: '1', trialAt: String(Date.now() + 60_000), trialBy: '', pause: '60000', good: 0 }
  await deps.redis.hset(upstreamKeys.health(api.slug), open)
  await deps.redis.publish(channels.health, api.slug)
  for (const { cacheStatus = '' } of await Promise.all([leading, ...following])) {
    assert.match(cacheStatus, /^agw; hit; ttl=-\d+; detail=upstream-down$/)
  }
})
