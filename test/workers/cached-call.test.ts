import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { applySettings } from '../../src/catalog/catalog.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, channels, upstreamKeys } from '../../src/redis/keys.ts'
import { RequestCoalescer, type Subscriber } from '../../workers/cache/request-coalescer.ts'
import type { CallOutcome } from '../../workers/jobs/cached-call.ts'
import { runCall } from '../../workers/jobs/run-call.ts'
import type { CallProgress, Failure } from '../../workers/upstream/outcome.ts'
import { until } from '../support/gateway.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { waiterOf } from '../support/waiter.ts'
import { openWorkerParts } from '../support/worker-parts.ts'

async function storeAnswer(
  { cache, clock }: Awaited<ReturnType<typeof openWorkerParts>>['deps'],
  { slug }: { slug: string },
  key: string,
): Promise<void> {
  const times = { storedAt: clock.now(), freshMs: 100_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 }
  const origin = { slug, hasUndeclared: false, owner: 'account' }
  assert.ok(await cache.store(origin, key, { ...times, body: Buffer.from('{}') }))
}

/** A call that follows a leader in another process. */
async function follow(t: TestContext) {
  const { deps, api, endpoint, callOf } = await openWorkerParts(t)
  const call = callOf()
  const keys = cacheKeys(endpoint, call) ?? assert.fail()
  await deps.redis.set(keys.leader, 'another', 'PX', 60_000)
  const progress: CallProgress = { reach: 'unsent' }
  const running = runCall(deps, call, {
    ...{ times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }, progress, isSecondRun: false },
    remainingMs: () => call.deadline - deps.clock.now(),
    signal: AbortSignal.timeout(30_000),
  })
  const follows = () => until(() => progress.ofRequest?.isUnderWay !== undefined)
  /** An answer is stored, and the lead is free. */
  const endWithAnswer = async () => {
    await storeAnswer(deps, api, keys.answer)
    await deps.redis.del(keys.leader)
  }
  return { running, follows, endWithAnswer }
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
  const run = () =>
    runCall(deps, callOf(), {
      times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
      progress: { reach: 'unsent' as const },
      isSecondRun: false,
      remainingMs: () => call.deadline - deps.clock.now(),
      signal: AbortSignal.timeout(30_000),
    })
  // The second call shares the request of the first.
  const running = [run(), run()]
  const of = (name: 'waiters' | 'leases' | 'log') =>
    deps.redis.zrange(capKeys.of(api.slug, SHARED_BUCKET, name), '0', '-1')
  await until(async () => (await of('waiters')).length === 1)
  const { answer } = cacheKeys(endpoint, call) ?? assert.fail()
  await storeAnswer(deps, api, answer)
  const ids = [...granted.values()]
  await cap.release({ ids, meanMs: 1 })
  for (const { cacheStatus } of await Promise.all(running)) assert.match(cacheStatus ?? '', /^agw; hit; ttl=\d+$/)
  await until(async () => (await of('leases')).length === 0)
  assert.deepEqual([upstream.arrivals.length, await of('log')], [0, ids])
})

/**
 * A call that shares the requests of other calls, one after the other, each of which fails. If the
 * call leads after them, it finds an answer that is stored by then.
 */
async function shareFailures(t: TestContext, failure: Failure, count: number): Promise<CallOutcome> {
  const { deps, api, endpoint, callOf } = await openWorkerParts(t)
  const call = callOf()
  const keys = cacheKeys(endpoint, call) ?? assert.fail()
  const progress: CallProgress = { reach: 'unsent' }
  const lead = async (id: string): Promise<void> => {
    const other: Subscriber = { id, deadline: call.deadline, signal, progress: { reach: 'unsent' } }
    const fail = async () => {
      await until(() => progress.ofRequest !== undefined)
      await storeAnswer(deps, api, keys.answer)
      return { outcome: failure }
    }
    // A call that shares the outcome of another call leads next, before the calls that came later.
    while ((await deps.coalescer.join(keys, other, fail)).isCollapsed);
  }
  const { signal } = new AbortController()
  const leading = Array.from({ length: count }, (_, index) => lead(`leader-${index}`))
  const remainingMs = () => call.deadline - deps.clock.now()
  const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
  const running = runCall(deps, call, { times, progress, isSecondRun: false, remainingMs, signal })
  await Promise.all(leading)
  return await running
}

test('a call with time left does not get the timeout of other calls, however many calls without time led before it', async (t) => {
  const { cacheStatus = '' } = await shareFailures(t, { code: 'UPSTREAM_TIMEOUT', isCutShort: true }, 5)
  assert.match(cacheStatus, /^agw; hit; /)
})

test('a call that shares the refusal of other calls learns nothing about the share of their accounts', async (t) => {
  const message = 'You have used your fair share of this API for now. Other accounts are waiting for it.'
  const refusal = { code: 'UPSTREAM_CAP_EXHAUSTED', retryAfterMs: 5_000, reach: 'refused' } as const
  assert.deepEqual((await shareFailures(t, { ...refusal, message }, 3)).outcome, refusal)
})

test('calls that share a request which was never sent say why it was not sent, and not that the upstream failed', async (t) => {
  const { deps, api, endpoint, cap, callOf } = await openWorkerParts(t)
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const waiters = [waiterOf('other|sent', 0)]
  await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  const keys = cacheKeys(endpoint, callOf()) ?? assert.fail()
  const stale = { storedAt: deps.clock.now() - 2_000, freshMs: 1_000, staleWhileRevalidateMs: 0 }
  const origin = { slug: api.slug, hasUndeclared: false, owner: 'account' }
  await deps.cache.store(origin, keys.answer, { ...stale, staleIfErrorMs: 600_000, body: Buffer.from('{}') })
  const start = (coalescer = deps.coalescer, progress: CallProgress = { reach: 'unsent' }) => {
    const call = callOf({ timeMs: 120_000 })
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
    const remainingMs = () => call.deadline - deps.clock.now()
    const signal = AbortSignal.timeout(30_000)
    return runCall({ ...deps, coalescer }, call, {
      times,
      progress,
      isSecondRun: false,
      remainingMs,
      signal,
    })
  }
  const leading = start()
  await until(async () => (await deps.redis.zcard(capKeys.of(api.slug, SHARED_BUCKET, 'queue'))) === 1)
  const follower: CallProgress = { reach: 'unsent' }
  const following = [start(), start(new RequestCoalescer(deps.redis), follower)]
  await until(() => follower.ofRequest?.isUnderWay !== undefined)
  const open = { state: 'Down', open: '1', trialAt: String(Date.now() + 60_000), trialBy: '', pause: '60000', good: 0 }
  await deps.redis.hset(upstreamKeys.health(api.slug), open)
  await deps.redis.publish(channels.health, api.slug)
  for (const { cacheStatus = '' } of await Promise.all([leading, ...following])) {
    assert.match(cacheStatus, /^agw; hit; ttl=-\d+; detail=upstream-down$/)
  }
})
