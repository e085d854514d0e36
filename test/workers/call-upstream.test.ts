import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, buildConnector } from 'undici'
import { BEGUN } from '../../src/cache/cache-key.ts'
import { SHARED_BUCKET } from '../../src/caps/bucket.ts'
import { NO_PLACE } from '../../src/caps/cap.ts'
import { PERMIT_AGE_MS_MAX } from '../../src/caps/timing.ts'
import { applySettings } from '../../src/catalog/catalog.ts'
import { loadConfig } from '../../src/config.ts'
import { migrate } from '../../src/db/migrate.ts'
import { HANGING_MS } from '../../src/health/breaker.ts'
import { healthKey } from '../../src/health/health-keys.ts'
import { createLog } from '../../src/log.ts'
import { memberOf } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, channels, keys } from '../../src/redis/keys.ts'
import { callThroughCache } from '../../workers/cache/cached-call.ts'
import { RequestCoalescer } from '../../workers/cache/request-coalescer.ts'
import { AnswerMemory } from '../../workers/upstream/answer-memory.ts'
import type { UpstreamCall } from '../../workers/upstream/call-upstream.ts'
import { openWorkerContext } from '../../workers/worker-context.ts'
import { testSecrets, until } from '../support/gateway.ts'
import { startServices } from '../support/services.ts'

const SLUG = 'encyclopedia'
const PAGE = JSON.stringify({ title: 'Earth', extract: 'A planet.' })

/** As a call without a ticket asks for its permits. */
function lateRequest(callId: string, deadline: number) {
  const identity = { accountId: 'account', callId, isAsync: false }
  const entry = { ...identity, weight: 1, slug: SLUG, bucket: SHARED_BUCKET }
  return { member: memberOf(entry), tag: NO_PLACE, lateJoin: { entry: () => entry, deadline: Math.floor(deadline) } }
}

/** A worker's parts, and a local upstream in the place of the real one. `slowConnections` take longer than a permit lasts. */
async function open(t: TestContext, listener: RequestListener, { slowConnections = 0 } = {}) {
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const services = await startServices()
  await migrate(services.databaseUrl)
  const { redisUrl, databaseUrl } = services
  const config = loadConfig({
    ...testSecrets(),
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    UPSTREAM_ENCYCLOPEDIA_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  })
  const { deps, close } = await openWorkerContext(config, createLog({ level: 'silent', pretty: false }, 'test'))
  const connect = buildConnector({})
  let connections = 0
  const client = new Agent({
    connections: 1,
    connect: (options, callback) => {
      connections += 1
      void delay(connections <= slowConnections ? PERMIT_AGE_MS_MAX + 50 : 0).then(() => connect(options, callback))
    },
  })
  t.after(async () => {
    await client.destroy()
    await close()
    server.closeAllConnections()
    server.close()
    await services.stop()
  })
  // Nothing was lost: caps start with an empty past.
  await deps.redis.set(keys.rememberedSince, 0)
  const api = deps.catalog.get(SLUG) ?? assert.fail()
  const { endpoint } = api.endpoints.get('/summary') ?? api.endpoints.get('summary') ?? assert.fail()
  /** `coalescer` is that of another process by default. */
  const call = async (
    id: string,
    {
      title = 'Earth',
      timeMs = 30_000,
      coalescer = new RequestCoalescer(deps.redis),
      signal = new AbortController().signal,
      joinsLate = false,
      extra = [] as [string, string][],
    } = {},
  ) => {
    const now = deps.clock.now()
    const request: UpstreamCall = {
      api,
      endpoint,
      call: {
        ...{ v: 1, id, accountId: 'account', mode: 'live', slug: SLUG, endpoint: 'summary' },
        ...{ parameters: { title }, extra, raw: false, isAsync: false, replyTo: '' },
        ...{ limitsAcquiredAt: Math.floor(now), deadline: Math.floor(now + timeMs) },
      },
      currentKey: () => undefined,
      bucket: SHARED_BUCKET,
      permitRequest: joinsLate ? lateRequest(id, now + timeMs) : { member: `account|${id}`, tag: 0 },
      times: { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 },
      progress: {},
      remainingMs: () => now + timeMs - deps.clock.now(),
      signal,
    }
    return (await callThroughCache({ ...deps, coalescer, clientOf: () => client }, request)).outcome
  }
  /** An open breaker whose pause is over. */
  const openBreaker = async () => {
    await deps.redis.hset(healthKey(SLUG), {
      state: 'Down',
      open: '1',
      trialAt: '1',
      trialBy: '',
      pause: '1000',
      good: 0,
    })
    await deps.redis.publish(channels.health, SLUG)
    await until(() => deps.health.breakerWaitMs(SLUG) === 0)
  }
  return { deps, api, call, openBreaker, paths }
}

test('a half-open attempt whose connection takes longer than a permit lasts is made with the next permit', async (t) => {
  const { deps, call, openBreaker, paths } = await open(t, (_request, response) => response.end(PAGE), {
    slowConnections: 1,
  })
  await openBreaker()
  const outcome = await call('slow')
  assert.ok('body' in outcome, JSON.stringify(outcome))
  assert.equal(paths.length, 1)
  await until(async () => (await deps.redis.hget(healthKey(SLUG), 'good')) === '1')
})

test('a half-open attempt that is redirected follows in its own slot, which its last answer decides about', async (t) => {
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
    const { good, trialBy } = await deps.redis.hgetall(healthKey(SLUG))
    return trialBy === '' ? good : undefined
  }
  await until(async () => (await health()) === '1')
  last = 'not JSON'
  await openBreaker()
  assert.equal(Reflect.get(await call('invalid', { title: 'Moon' }), 'code'), 'UPSTREAM_INVALID_RESPONSE')
  await until(async () => (await deps.redis.hget(healthKey(SLUG), 'trialBy')) === '')
  const { good, pause } = await deps.redis.hgetall(healthKey(SLUG))
  assert.deepEqual([good, pause], ['0', '2000'])
})

test('a call that follows one with little time left sends a request of its own when that one runs out of it', async (t) => {
  const { deps, call, paths } = await open(t, (_request, response) => {
    if (paths.length > 1) response.end(PAGE)
  })
  const hurried = call('hurried', { timeMs: 1_500 })
  await until(() => paths.length === 1)
  const patient = call('patient')
  await until(async () => (await deps.redis.keys(`agw:{${SLUG}}:followed:*`)).length === 1)
  assert.equal(Reflect.get(await hurried, 'code'), 'UPSTREAM_TIMEOUT')
  const outcome = await patient
  assert.ok('body' in outcome, JSON.stringify(outcome))
  assert.equal(paths.length, 2)
})

test('calls whose time is over with that of the request that they share send none of their own', async (t) => {
  const { deps, call, paths } = await open(t, () => undefined)
  const coalescer = new RequestCoalescer(deps.redis)
  const outcomes = await Promise.all(['one', 'two', 'three'].map((id) => call(id, { timeMs: 1_500, coalescer })))
  assert.deepEqual(
    outcomes.map((outcome) => Reflect.get(outcome, 'code')),
    ['UPSTREAM_TIMEOUT', 'UPSTREAM_TIMEOUT', 'UPSTREAM_TIMEOUT'],
  )
  assert.equal(paths.length, 1)
})

test('a call whose time is over with that of a request in another process sends none of its own', async (t) => {
  const { deps, call, paths } = await open(t, () => undefined)
  const startedAt = performance.now()
  const first = call('first', { timeMs: 2_500 })
  await until(() => paths.length === 1)
  const second = call('second', { timeMs: startedAt + 2_900 - performance.now() })
  await until(async () => (await deps.redis.keys(`agw:{${SLUG}}:followed:*`)).length === 1)
  const codes = (await Promise.all([first, second])).map((outcome) => Reflect.get(outcome, 'code'))
  assert.deepEqual(codes, ['UPSTREAM_TIMEOUT', 'UPSTREAM_TIMEOUT'])
  assert.equal(paths.length, 1)
})

test('the time for which a large answer waits for memory of the worker is no failure of the upstream', async (t) => {
  const page = JSON.stringify({ title: 'Earth', extract: 'x'.repeat(200_000) })
  const { deps, call, paths } = await open(t, (_request, response) => response.end(page))
  const memory = new AnswerMemory(0)
  deps.answerMemory = memory
  const end = Promise.withResolvers<void>()
  const holding = memory.within(async ({ take }) => {
    await take(1, new AbortController().signal)
    await end.promise
  })
  const calling = call('large')
  await until(() => paths.length === 1)
  await delay(HANGING_MS + 500)
  end.resolve()
  await holding
  const outcome = await calling
  assert.ok('body' in outcome, JSON.stringify(outcome))
  await until(async () => (await deps.redis.exists(healthKey(SLUG))) === 1)
  const { ok, failBefore } = await deps.redis.hgetall(healthKey(SLUG))
  assert.deepEqual({ ok, failBefore }, { ok: '1', failBefore: '0' })
})

const MOVED = { location: '/api/rest_v1/page/summary/World' }

test('a request that was redirected and waits for its next permit has begun, for calls in other processes too', async (t) => {
  const { deps, api, call, paths } = await open(t, (_request, response) => response.writeHead(302, MOVED).end())
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 60 }] } })
  const leaving = new AbortController()
  const redirected = call('redirected', { timeMs: 120_000, signal: leaving.signal })
  await until(async () => (await deps.redis.zcard(capKeys.of(SLUG, SHARED_BUCKET, 'waiters'))) === 1)
  assert.equal(paths.length, 1)
  const [leader = ''] = await deps.redis.keys(`agw:{${SLUG}}:leader:*`)
  // When the lead is renewed, within a second.
  await until(async () => (await deps.redis.get(leader))?.endsWith(BEGUN) === true)
  leaving.abort(new Error('left'))
  await assert.rejects(redirected, /left/)
})

test('a call that waits for the permit of its next request is not told of a failure that was made good', async (t) => {
  const { api, call, paths } = await open(t, (_request, response) => {
    if (paths.length === 1) response.writeHead(500).end()
    else response.writeHead(302, MOVED).end()
  })
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 2, seconds: 60 }] } })
  assert.equal(Reflect.get(await call('redirected', { timeMs: 20_000 }), 'code'), 'UPSTREAM_CAP_EXHAUSTED')
  assert.equal(paths.length, 2)
})

test('a call whose repeat joined the queue late, and is evicted, is told of the failure before', async (t) => {
  const { deps, api, call, paths } = await open(t, (_request, response) => response.writeHead(500).end())
  applySettings(api, { caps: { concurrency: 5, rates: [{ max: 1, seconds: 5 }] } })
  const failed = call('failed', { joinsLate: true })
  await until(() => paths.length === 1)
  await until(async () => (await deps.redis.zcard(capKeys.of(SLUG, SHARED_BUCKET, 'waiters'))) === 1)
  await deps.caps.of(api, SHARED_BUCKET).applyUpstreamLimit({ closedForMs: 600_000, observedBy: '' })
  assert.equal(Reflect.get(await failed, 'code'), 'UPSTREAM_ERROR')
  assert.equal(paths.length, 1)
})

test('a limit that undeclared parameters meet closes the cap for nobody and has a probe look, a plain one closes it for an hour at most', async (t) => {
  const { deps, api, call } = await open(t, ({ url }, response) => {
    const limits = url?.includes('ensemble') || url?.includes('Limited')
    if (limits) response.writeHead(429, { 'retry-after': '90000' }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end('{"title":"Earth","extract":"A planet."}')
  })
  const limited = await call('provoked', { extra: [['ensemble', '1']] })
  assert.equal(Reflect.get(limited, 'code'), 'UPSTREAM_RATE_LIMITED')
  const closedUntil = async () => Number(await deps.redis.hget(capKeys.of(SLUG, SHARED_BUCKET, 'state'), 'closed'))
  assert.equal(await closedUntil(), 0)
  await until(async () => {
    const jobs = await deps.queues.of(SLUG).getJobs(['prioritized', 'waiting', 'delayed'])
    return jobs.some(({ name }) => name === 'probe')
  })
  assert.ok(!('code' in (await call('honest'))))
  await call('plain', { title: 'Limited' })
  const forMs = (await closedUntil()) - deps.clock.now()
  assert.ok(api && forMs > 3_500_000 && forMs < 3_601_000, `${forMs}`)
})
