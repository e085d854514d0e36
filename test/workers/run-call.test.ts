import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cacheKeys } from '../../src/cache/cache-key.ts'
import { applySettings } from '../../src/catalog/catalog.ts'
import { SHARED_BUCKET, waitQueueEntry } from '../../src/queue/wait-queue-entry.ts'
import { capKeys } from '../../src/redis/keys.ts'
import { RequestCoalescer } from '../../workers/cache/request-coalescer.ts'
import { DEADLINE_PASSED, LOCK_LOST } from '../../workers/errors/abort-reasons.ts'
import { leavePlace, runCall } from '../../workers/jobs/run-call.ts'
import { type CallProgress, isFailure } from '../../workers/upstream/outcome.ts'
import { until } from '../support/gateway.ts'
import { startUpstreamServer } from '../support/upstream-server.ts'
import { waiterOf } from '../support/waiter.ts'
import { failureOf, openWorkerParts } from '../support/worker-parts.ts'

/** The one request that the cap allows for a minute has been sent. */
async function useUp({ api, cap }: Pick<Awaited<ReturnType<typeof openWorkerParts>>, 'api' | 'cap'>) {
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const waiters = [waiterOf('other|sent', 0)]
  await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
}

test('a call that first shares an answer and then needs a permit is refused at once if its place is too late', async (t) => {
  const { deps, api, endpoint, cap, callOf } = await openWorkerParts(t)
  await useUp({ api, cap })
  // Another call has the next place, so that the script has to judge the call after it.
  const next = { id: 'next', accountId: 'other', isAsync: false, weight: 1, slug: api.slug, bucket: SHARED_BUCKET }
  assert.ok('tag' in (await cap.joinWaitQueue(next, deps.clock.now() + 100_000)))
  // Its leader is gone with its place, or with a worker that died.
  for (const { isNamed, timeMs, leastMs } of [
    { isNamed: false, timeMs: 90_000, leastMs: 100_000 },
    { isNamed: true, timeMs: 30_000, leastMs: 100_000 },
  ]) {
    const call = callOf({ timeMs, weight: 1 })
    const { coalesced, leader } = cacheKeys(endpoint, call) ?? assert.fail()
    // If the call before it led, it deletes the name at the end of its lead.
    await until(async () => (await deps.redis.exists(leader)) === 0)
    if (isNamed) await deps.redis.set(coalesced, 'other|gone', 'PX', 60_000)
    const { outcome } = await runCall(deps, call, {
      ...{
        times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
        progress: { reach: 'unsent' as const },
        isSecondRun: false,
      },
      remainingMs: () => call.deadline - deps.clock.now(),
      signal: AbortSignal.timeout(20_000),
    })
    const { code, reach, retryAfterMs = 0 } = failureOf(outcome)
    assert.deepEqual({ code, reach }, { code: 'UPSTREAM_CAP_EXHAUSTED', reach: 'refused' })
    assert.ok(retryAfterMs > leastMs && retryAfterMs < leastMs + 25_000, `${retryAfterMs} ms`)
  }
})

test('a call that joined the queue late keeps its place when another worker runs it', async (t) => {
  const { deps, api, endpoint, cap, callOf } = await openWorkerParts(t)
  await useUp({ api, cap })
  const call = callOf({ timeMs: 120_000 })
  const ending = new AbortController()
  const running = runCall(deps, call, {
    ...{
      times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
      progress: { reach: 'unsent' as const },
      isSecondRun: false,
    },
    remainingMs: () => call.deadline - deps.clock.now(),
    signal: ending.signal,
  })
  const places = () => deps.redis.zrange(capKeys.of(api.slug, SHARED_BUCKET, 'queue'), '0', '-1')
  await until(async () => (await places()).length === 1)
  ending.abort(LOCK_LOST)
  await running
  const keys = cacheKeys(endpoint, call) ?? assert.fail()
  await until(() => !deps.coalescer.isSharedHere(keys))
  // Its last command to Redis would be answered by then.
  await deps.redis.ping()
  await deps.redis.ping()
  assert.deepEqual(await places(), [`account|${call.id}`])
})

test('the place of a call whose worker was lost is kept while another call waits in it, and given up when no request needs it', async (t) => {
  const { deps, api, endpoint, cap, callOf } = await openWorkerParts(t)
  await useUp({ api, cap })
  const call = callOf({ timeMs: 120_000 })
  const keys = cacheKeys(endpoint, call) ?? assert.fail()
  const run = (
    of: typeof call,
    signal: AbortSignal,
    { isSecondRun = false, progress = { reach: 'unsent' } as CallProgress } = {},
  ) => {
    const coalescer = isSecondRun ? new RequestCoalescer(deps.redis) : deps.coalescer
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
    const remainingMs = () => of.deadline - deps.clock.now()
    const running = { times, progress, isSecondRun, signal, remainingMs }
    const made = runCall({ ...deps, coalescer }, of, running)
    return isSecondRun ? made.finally(() => void leavePlace(deps, of, running)) : made
  }
  const places = () => deps.redis.zrange(capKeys.of(api.slug, SHARED_BUCKET, 'queue'), '0', '-1')
  const [losing, ending] = [new AbortController(), new AbortController()]
  const first = run(call, losing.signal)
  await until(async () => (await places()).length === 1)
  const progress: CallProgress = { reach: 'unsent' }
  const sharing = run(callOf({ timeMs: 120_000 }), ending.signal, { progress })
  await until(() => progress.ofRequest !== undefined)
  losing.abort(LOCK_LOST)
  await first
  const following: CallProgress = { reach: 'unsent' }
  const second = run(call, ending.signal, { isSecondRun: true, progress: following })
  await until(() => following.ofRequest?.isUnderWay !== undefined)
  const kept = await places()
  ending.abort(DEADLINE_PASSED)
  await Promise.all([sharing, second])
  await until(() => !deps.coalescer.isSharedHere(keys))
  assert.deepEqual(kept, [`account|${call.id}`])

  const entry = waitQueueEntry(call, { bucket: SHARED_BUCKET })
  assert.ok('tag' in (await cap.joinWaitQueue(entry, call.deadline)))
  const times = { storedAt: deps.clock.now(), freshMs: 60_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 }
  const origin = { slug: api.slug, hasUndeclared: false, owner: 'account' }
  await deps.cache.store(origin, keys.answer, { ...times, body: Buffer.from('{}') })
  await run(call, AbortSignal.timeout(20_000), { isSecondRun: true })
  await until(async () => (await places()).length === 0)
})

test('a call that gets no permit says how long it waited for a permit, whether it met its deadline or was refused', async (t) => {
  const { deps, api, cap, callOf } = await openWorkerParts(t)
  await useUp({ api, cap })
  const queue = capKeys.of(api.slug, SHARED_BUCKET, 'queue')
  const ending = new AbortController()
  const start = (fields: Parameters<typeof callOf>[0]) => {
    const call = callOf(fields)
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
    const remainingMs = () => call.deadline - deps.clock.now()
    const run = {
      times,
      progress: { reach: 'unsent' as const },
      isSecondRun: false,
      remainingMs,
      signal: ending.signal,
    }
    return { times, result: runCall(deps, call, run) }
  }
  const refused = start({ timeMs: 30_000, parameters: { title: 'Moon' } })
  assert.equal(failureOf((await refused.result).outcome).code, 'UPSTREAM_CAP_EXHAUSTED')
  assert.ok(refused.times.permitMs > 0)
  const waiting = start({ timeMs: 120_000 })
  await until(async () => (await deps.redis.zcard(queue)) === 1)
  const since = performance.now()
  await deps.redis.ping()
  const waitedMs = performance.now() - since
  ending.abort(DEADLINE_PASSED)
  assert.equal(failureOf((await waiting.result).outcome).code, 'DEADLINE_EXCEEDED')
  assert.ok(waiting.times.permitMs >= waitedMs, `${waiting.times.permitMs} ms of ${waitedMs} ms`)
})

test('a call that draws from a pool gets the slot that it was quoted, although calls of another account wait to fill that pool and others', async (t) => {
  const upstream = await startUpstreamServer()
  t.after(upstream.close)
  const results = Array.from({ length: 50 }, () => ({ question: 'q', incorrect_answers: [] }))
  upstream.play('trivia', () => ({ response_code: 0, results }))
  const { deps, callOf } = await openWorkerParts(t, upstream.environment('trivia'))
  const api = deps.catalog.get('trivia') ?? assert.fail()
  applySettings(api, { caps: { concurrency: 1, rates: [{ max: 1, seconds: 1 }] } })
  const cap = deps.caps.of(api, SHARED_BUCKET)
  const waiters = [waiterOf('other|sent', 0)]
  const { granted } = await cap.acquire({ waiters, released: { ids: [], meanMs: 0 }, leaseMs: 6_000 })
  await cap.release({ ids: [...granted.values()], meanMs: 1 })
  const leaving = new AbortController()
  const start = async (accountId: string, category: number, isAsync: boolean) => {
    const call = callOf({
      ...{ accountId, isAsync, slug: 'trivia', endpoint: '/questions', parameters: { amount: 50, category } },
      timeMs: 60_000,
    })
    const entry = waitQueueEntry(call, { bucket: SHARED_BUCKET })
    const place = await cap.joinWaitQueue(entry, call.deadline)
    assert.ok('tag' in place)
    const running = runCall(
      deps,
      { ...call, ticket: { tag: place.tag } },
      {
        ...{
          times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
          progress: { reach: 'unsent' as const },
          isSecondRun: false,
        },
        ...{ remainingMs: () => call.deadline - deps.clock.now(), signal: leaving.signal },
      },
    )
    return { place, running }
  }
  const waiting = () => deps.redis.zcard(capKeys.of('trivia', SHARED_BUCKET, 'waiters'))
  const others = []
  for (const category of [9, 10, 11, 12, 12]) others.push(await start('loud', category, true))
  await until(async () => (await waiting()) >= 4)
  const sentBefore = upstream.arrivals.length
  const { place, running } = await start('quiet', 12, false)
  const { outcome } = await running
  assert.ok('body' in outcome, JSON.stringify(outcome))
  const first = upstream.arrivals.slice(sentBefore).findIndex(({ url }) => url.includes('category=12'))
  assert.ok(first <= 1, `${first} requests of the other account went first; it was quoted ${place.etaMs} ms`)
  leaving.abort(DEADLINE_PASSED)
  await Promise.all(others.map((other) => other.running))
})

test('a call whose deadline passes during its request ends as a timeout of the upstream', async (t) => {
  const upstream = await startUpstreamServer()
  t.after(upstream.close)
  upstream.play('trivia', () => new Promise(() => undefined))
  const { deps, callOf } = await openWorkerParts(t, upstream.environment('trivia'))
  const call = callOf({ slug: 'trivia', endpoint: '/questions', parameters: { amount: 50, category: 9 } })
  const ending = new AbortController()
  const running = runCall(deps, call, {
    times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
    progress: { reach: 'unsent' },
    isSecondRun: false,
    remainingMs: () => call.deadline - deps.clock.now(),
    signal: ending.signal,
  })
  await until(() => upstream.arrivals.length === 1)
  ending.abort(DEADLINE_PASSED)
  assert.equal(failureOf((await running).outcome).code, 'UPSTREAM_TIMEOUT')
})

test('a call that an operator holds says how long it waited until the operator resumed the API, or until its deadline', async (t) => {
  const { deps, api, callOf } = await openWorkerParts(t)
  const runHeld = async (end: (ending: AbortController) => void) => {
    applySettings(api, { pausedMode: 'hold' })
    const ending = new AbortController()
    const call = callOf({ mode: 'test' })
    const times = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
    const running = runCall(deps, call, {
      ...{ times, progress: { reach: 'unsent' as const }, isSecondRun: false, signal: ending.signal },
      remainingMs: () => call.deadline - deps.clock.now(),
    })
    await new Promise(setImmediate)
    end(ending)
    const { outcome } = await running
    return { outcome, hasWaited: times.permitMs > 0 }
  }
  const resumed = await runHeld(() => {
    applySettings(api, {})
    deps.held.look()
  })
  assert.deepEqual([isFailure(resumed.outcome), resumed.hasWaited], [false, true])
  const late = await runHeld((ending) => ending.abort(DEADLINE_PASSED))
  assert.deepEqual([failureOf(late.outcome).code, late.hasWaited], ['DEADLINE_EXCEEDED', true])
})
