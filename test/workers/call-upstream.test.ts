import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { BEGUN } from '../../src/cache/cache-key.ts'
import { applySettings } from '../../src/catalog/catalog.ts'
import { HANGING_MS } from '../../src/health/health-thresholds.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, upstreamKeys } from '../../src/redis/keys.ts'
import { RequestCoalescer } from '../../workers/cache/request-coalescer.ts'
import { AnswerMemory, MemoryShare } from '../../workers/upstream/answer-memory.ts'
import type { CallProgress } from '../../workers/upstream/outcome.ts'
import { until } from '../support/gateway.ts'
import { failureOf } from '../support/worker-parts.ts'
import { openLocalWorker as open, PAGE, SLUG } from './local-worker.ts'

test('a half-open attempt whose connection takes longer than a permit lasts is made with the next permit', async (t) => {
  const { deps, call, openBreaker, paths } = await open(t, (_request, response) => response.end(PAGE), {
    slowConnections: 1,
  })
  await openBreaker()
  const outcome = await call('slow')
  assert.ok('body' in outcome, JSON.stringify(outcome))
  assert.equal(paths.length, 1)
  await until(async () => (await deps.redis.hget(upstreamKeys.health(SLUG), 'good')) === '1')
})

test('a half-open attempt follows a redirect in its own half-open slot, and the last answer decides the outcome of the slot', async (t) => {
  let last = PAGE
  const { deps, call, openBreaker, paths } = await open(t, (request, response) => {
    if (!request.url?.endsWith('/World')) response.writeHead(302, { location: '/api/rest_v1/page/summary/World' }).end()
    else response.end(last)
  })
  await openBreaker()
  const outcome = await call('redirected')
  assert.ok('body' in outcome, JSON.stringify(outcome))
  assert.equal(paths.length, 2)
  const health = async () => {
    const { good, trialBy } = await deps.redis.hgetall(upstreamKeys.health(SLUG))
    return trialBy === '' ? good : undefined
  }
  await until(async () => (await health()) === '1')
  last = 'not JSON'
  await openBreaker()
  assert.equal(failureOf(await call('invalid', { title: 'Moon' })).code, 'UPSTREAM_INVALID_RESPONSE')
  await until(async () => (await deps.redis.hget(upstreamKeys.health(SLUG), 'trialBy')) === '')
  const { good, pause } = await deps.redis.hgetall(upstreamKeys.health(SLUG))
  assert.deepEqual([good, pause], ['0', '60000'])
})

test('a call that shares the request of a call with little time left sends a request of its own when that time is over', async (t) => {
  const { call, paths } = await open(t, (_request, response) => {
    if (paths.length > 1) response.end(PAGE)
  })
  const hurried = call('hurried', { timeMs: 1_500 })
  await until(() => paths.length === 1)
  const progress: CallProgress = { reach: 'unsent' }
  const patient = call('patient', { progress })
  await until(() => progress.ofRequest?.isUnderWay !== undefined)
  assert.equal(failureOf(await hurried).code, 'UPSTREAM_TIMEOUT')
  const outcome = await patient
  assert.ok('body' in outcome, JSON.stringify(outcome))
  assert.equal(paths.length, 2)
})

test('calls whose time ends together with the request that they share send no request of their own', async (t) => {
  const { deps, call, paths } = await open(t, () => undefined)
  const coalescer = new RequestCoalescer(deps.redis)
  const outcomes = await Promise.all(['one', 'two', 'three'].map((id) => call(id, { timeMs: 1_500, coalescer })))
  assert.deepEqual(
    outcomes.map((outcome) => failureOf(outcome).code),
    ['UPSTREAM_TIMEOUT', 'UPSTREAM_TIMEOUT', 'UPSTREAM_TIMEOUT'],
  )
  assert.equal(paths.length, 1)
})

test('a call whose time ends soon after the request that it shares sends no request of its own', async (t) => {
  const { deps, call, paths } = await open(t, () => undefined)
  const { coalescer } = deps
  const startedAt = performance.now()
  const first = call('first', { timeMs: 2_500, coalescer })
  await until(() => paths.length === 1)
  const progress: CallProgress = { reach: 'unsent' }
  const second = call('second', { timeMs: startedAt + 2_900 - performance.now(), coalescer, progress })
  await until(() => progress.ofRequest !== undefined)
  const codes = (await Promise.all([first, second])).map((outcome) => failureOf(outcome).code)
  assert.deepEqual(codes, ['UPSTREAM_TIMEOUT', 'UPSTREAM_TIMEOUT'])
  assert.equal(paths.length, 1)
})

test('the time for which a large answer waits for memory of the worker is no failure of the upstream', async (t) => {
  const page = JSON.stringify({ title: 'Earth', extract: 'x'.repeat(200_000) })
  const { deps, call, paths } = await open(t, (_request, response) => response.end(page))
  const memory = new AnswerMemory(0)
  deps.answerMemory = memory
  const holding = new MemoryShare(memory)
  holding.take(1, new AbortController().signal)
  const calling = call('large')
  await until(() => paths.length === 1)
  await delay(HANGING_MS + 500)
  holding.giveBack()
  const outcome = await calling
  assert.ok('body' in outcome, JSON.stringify(outcome))
  await until(async () => (await deps.redis.exists(upstreamKeys.health(SLUG))) === 1)
  const { ok, failBefore } = await deps.redis.hgetall(upstreamKeys.health(SLUG))
  assert.deepEqual({ ok, failBefore }, { ok: '1', failBefore: '0' })
})

test('a hanging request counts as a failure in a row while it runs, and not again when it ends', async (t) => {
  const { deps, call, paths } = await open(t, () => undefined)
  const leaving = new AbortController()
  const hanging = call('hangs', { signal: leaving.signal })
  const counted = async () => {
    const { run, fail } = await deps.redis.hgetall(upstreamKeys.health(SLUG))
    return [run, fail]
  }
  await until(async () => (await counted())[0] === '-1')
  assert.deepEqual(await counted(), ['-1', '0'])
  leaving.abort(new Error('left'))
  await assert.rejects(hanging, /left/)
  await until(async () => (await counted())[1] === '1')
  assert.deepEqual(await counted(), ['-1', '1'])
  assert.equal(paths.length, 1)
})

const MOVED = { location: '/api/rest_v1/page/summary/World' }

test('a redirected request that waits for its next permit counts as begun, for calls in other processes too', async (t) => {
  const { deps, api, call, paths } = await open(t, (_request, response) => response.writeHead(302, MOVED).end())
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const leaving = new AbortController()
  const redirected = call('redirected', { timeMs: 120_000, signal: leaving.signal })
  await until(async () => (await deps.redis.zcard(capKeys.of(SLUG, SHARED_BUCKET, 'waiters'))) === 1)
  assert.equal(paths.length, 1)
  const [leader = ''] = await deps.redis.keys(`agw:{${SLUG}}:leader:*`)
  // The time at which the lead is renewed, within a second.
  await until(async () => (await deps.redis.get(leader))?.endsWith(BEGUN) === true)
  leaving.abort(new Error('left'))
  await assert.rejects(redirected, /left/)
})

test('a call that waits for the permit of its next request does not report a failure that a later request repaired', async (t) => {
  const { api, call, paths } = await open(t, (_request, response) => {
    if (paths.length === 1) response.writeHead(500).end()
    else response.writeHead(302, MOVED).end()
  })
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 2, seconds: 60 }] } })
  assert.equal(failureOf(await call('redirected', { timeMs: 20_000 })).code, 'UPSTREAM_CAP_EXHAUSTED')
  assert.equal(paths.length, 2)
})

test('a call whose repeated request joins the queue late and is evicted reports the failure of the first request', async (t) => {
  const { deps, api, call, paths } = await open(t, (_request, response) => response.writeHead(500).end())
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 5 }] } })
  const failed = call('failed', { joinsLate: true })
  await until(() => paths.length === 1)
  await until(async () => (await deps.redis.zcard(capKeys.of(SLUG, SHARED_BUCKET, 'waiters'))) === 1)
  await deps.caps.of(api, SHARED_BUCKET).applyUpstreamLimit({ closedForMs: 600_000, observedBy: '' })
  assert.equal(failureOf(await failed).code, 'UPSTREAM_ERROR')
  assert.equal(paths.length, 1)
})
