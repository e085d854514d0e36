import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import { createLog } from '../../src/log.ts'
import { probeScheduler } from '../../src/queue/probe-job.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { channels, upstreamKeys } from '../../src/redis/keys.ts'
import { type Account, type Answer, send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { laneKey } from '../support/lane.ts'
import { type Arrival, startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const SLUGS = ['mock-data', 'dog-images', 'currency', 'countries', 'creature-game', 'tech-forum', 'timezone']

describe('the health of an upstream', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let redis: RedisConnection
  let upstreams: Map<string, Upstream>

  before(async () => {
    upstream = await startUpstreamServer()
    upstreams = await loadUpstreams()
    const environment = {
      // All upstreams, so that no probe leaves the machine.
      ...upstream.environment(...upstreams.keys()),
      UPSTREAM_DOG_IMAGES_CAPS: 'concurrency=50,10000/1',
      PLAN_LIMITS: '{"Free":{"perMinute":1000,"inFlight":50}}',
    }
    for (const slug of SLUGS) upstream.play(slug, () => ({ id: 1, title: 't', body: 'b', userId: 1 }))
    gateway = await startGateway({ isInProcess: true, environment })
    account = await signUp(gateway)
    await gateway.startProcess('workers/probe.ts')
    redis = openRedis([gateway.services.redisUrl], 'blocking', createLog({ level: 'silent', pretty: false }, 'test'))
  })
  after(async () => {
    await closeRedis(redis)
    await gateway.stop()
    await upstream.close()
  })

  const detail = async (slug: string) => (await send(gateway, `/v1/catalog/${slug}`)).body
  let posts = 0
  /** A call that differs from all before it, so that no stored answer serves it. */
  const post = () => {
    posts += 1
    return send(gateway, `/v1/call/mock-data/posts?id=${posts}`, { key: account.live })
  }
  const answerPost = () => upstream.play('mock-data', () => ({ id: 1, title: 't', body: 'b', userId: 1 }))
  const failWith = (slug: string, status: number, headers: Record<string, string> = {}) =>
    upstream.play(slug, (_arrival, response) => void response.writeHead(status, headers).end('{}'))
  /** The breaker's pause is over, as if its time had passed. */
  const endPause = async (slug: string) => {
    await redis.hset(upstreamKeys.health(slug), 'trialAt', '1')
    await redis.publish(channels.health, slug)
  }

  it('the health of an upstream is 100 and Healthy if nothing was tried', async () => {
    const { health, health_score, limits, terms, docs } = await detail('sunrise-sunset')
    assert.equal(health_score, 100)
    assert.deepEqual(
      [health.status, health.score, health.lastChange, health.history, health.parts.p95Ms],
      ['Healthy', 100, null, [], null],
    )
    assert.ok(limits.concurrency >= 1 && terms.summary.length > 0 && docs.endsWith('/apis/sunrise-sunset'))
    assert.equal(health.checkedAt, null)
    assert.equal((await send(gateway, '/v1/catalog/no-such')).body.code, 'API_NOT_FOUND')
  })

  it('the health of an upstream falls with each failed call as the formula says, is Down after five and a probe, and comes back by three half-open attempts', async () => {
    for (let index = 0; index < 2; index += 1) assert.equal((await post()).status, 200)
    await until(async () => (await detail('mock-data')).health.parts.ok > 1.9)
    failWith('mock-data', 500)
    const arrived = upstream.arrivalsOf('mock-data').length
    const failures = () => upstream.arrivalsOf('mock-data').length - arrived
    assert.deepEqual((await post()).body.error.code, 'UPSTREAM_ERROR')
    await until(async () => (await post()).body.error.code === 'UPSTREAM_UNAVAILABLE')
    // Five calls of one account, perhaps with one or two more on their way, and the probe that
    // decides.
    assert.ok(failures() >= 6, `${failures()} failures`)
    await until(async () => (await detail('mock-data')).health.status === 'Down')
    const { health, health_score } = await detail('mock-data')
    const { ok, fail } = health.parts
    // If a call and its repeats fail, the score counts one failure.
    assert.ok(fail > 1.9 && fail < failures() - 1, `${fail} of ${failures()}`)
    const formula = Math.round(80 * Math.max(0, 1 - (2 * fail) / (ok + fail + 5)) + health.parts.latency)
    assert.equal(health_score, Math.min(39, formula))

    const refused = await post()
    assert.deepEqual([refused.status, refused.body.error.code], [502, 'UPSTREAM_UNAVAILABLE'])
    const log = () => send(gateway, `/v1/logs/${refused.headers.get('x-call-id')}`, { token: account.token })
    await until(async () => (await log()).status === 200)
    assert.match((await log()).body.call.cause, /^HTTP 500 in \d/)
    assert.match(refused.body.error.message, /^The upstream API is down \(HTTP 500 in \d+ ms\)\.$/)
    assert.match(health.meanwhile, /; the last failure: HTTP 500 in \d+ ms\. /)
    const retryAfter = Number(refused.headers.get('retry-after'))
    // The first half-open attempt comes 30 seconds after the breaker opened. If that attempt fails,
    // the pause doubles. A node's idea of Redis' clock may be wrong by an eighth of a second.
    const triedAt = Date.now() + 1_000 * retryAfter
    assert.ok(triedAt >= Date.parse(health.lastChange.at) + 30_000 - 125, `${retryAfter}`)
    assert.ok(retryAfter <= 300, String(retryAfter))

    answerPost()
    for (let good = 0; good < 3; good += 1) {
      await endPause('mock-data')
      await until(async () => (await post()).status === 200)
    }
    await until(async () => (await detail('mock-data')).health.status === 'Degraded')
    await until(async () => (await detail('mock-data')).health.lastChange?.to === 'Degraded')
    const { history } = (await detail('mock-data')).health
    assert.deepEqual(
      history.map(({ from, to, cause }: Record<string, string>) => `${from} ${to} ${cause}`).toReversed(),
      ['Healthy Degraded score', 'Degraded Down failures-in-a-row', 'Down Degraded trials-passed'],
    )
  })

  it('the health of an upstream is Down if its answers to one caller and to the recorded call cannot be read, while its other endpoints are called on', async () => {
    const categories = upstreams.get('meal-recipes')?.endpoints['/categories']?.example.response ?? assert.fail()
    upstream.play('meal-recipes', ({ url }) => (url.includes('categories') ? categories : { unexpected: true }))
    const call = (path: string) => send(gateway, `/v1/call/meal-recipes/${path}`, { key: account.live })
    for (const meal of ['a', 'b', 'c', 'd', 'e'])
      assert.equal((await call(`search?s=${meal}`)).body.error.code, 'UPSTREAM_INVALID_RESPONSE')
    await until(async () => (await detail('meal-recipes')).health.status === 'Down')
    assert.equal((await call('categories')).status, 200)
  })

  it('the health of an upstream admits one call at a time when the pause of an open breaker is over', async () => {
    failWith('timezone', 500)
    const zones = [
      'Rome',
      'Paris',
      'Berlin',
      'Madrid',
      'Vienna',
      'Prague',
      'Warsaw',
      'Athens',
      'Oslo',
      'Lisbon',
      'Dublin',
    ]
    // The calls differ, because identical calls would share one request anyway.
    const call = (index = 0) =>
      send(gateway, `/v1/call/timezone/current?timezone=Europe/${zones[index]}`, { key: account.live })
    await until(async () => (await call()).body.error.code === 'UPSTREAM_UNAVAILABLE')
    const held = Promise.withResolvers<void>()
    upstream.play('timezone', async (_arrival, response) => {
      await held.promise
      response.writeHead(500).end()
    })
    const before = upstream.arrivalsOf('timezone').length
    await endPause('timezone')
    const attempts = Array.from({ length: 10 }, (_, index) => call(index + 1))
    await until(() => upstream.arrivalsOf('timezone').length > before)
    held.resolve()
    await Promise.all(attempts)
    assert.equal(upstream.arrivalsOf('timezone').length - before, 1)
  })

  it('failures that undeclared parameters of one caller cause do not change the health of an upstream, and such calls are sent once and get 502 or 400', async () => {
    const one = await signUp(gateway)
    const answers: Record<string, (response: ServerResponse) => unknown> = {
      UPSTREAM_TOO_LARGE: (response) => response.end(`"${'x'.repeat(3 * 1024 * 1024)}"`),
      UPSTREAM_INVALID_RESPONSE: (response) => response.end('<html>'),
      UPSTREAM_REJECTED: (response) => response.writeHead(431).end(),
    }
    const isAdded = ({ url }: Arrival) => url.includes('extra=')
    const sent = () => upstream.arrivalsOf('dog-images').filter(isAdded).length
    for (const [code, answer] of Object.entries(answers)) {
      upstream.play('dog-images', (arrival, response) =>
        isAdded(arrival)
          ? void answer(response)
          : { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' },
      )
      const before = sent()
      for (let index = 0; index < 6; index += 1) {
        const { body } = await send(gateway, `/v1/call/dog-images/random?extra=${code}-${index}`, { key: one.live })
        assert.equal(body.error.code, code)
      }
      assert.equal(sent() - before, 6)
      assert.equal((await send(gateway, '/v1/call/dog-images/random', { key: account.live })).status, 200)
    }
    const { parts, status } = (await detail('dog-images')).health
    assert.deepEqual([parts.fail, status], [0, 'Healthy'])
  })

  it('the health of an upstream stays as it is for others while what one caller adds makes its requests fail', async () => {
    const one = await signUp(gateway)
    upstream.play('dog-images', ({ url }, response) =>
      url.includes('extra=')
        ? void response.writeHead(500).end()
        : { status: 'success', message: 'https://images.dog.ceo/breeds/a/b.jpg' },
    )
    for (let index = 0; index < 8; index += 1) {
      const failed = await send(gateway, `/v1/call/dog-images/random?extra=${index}`, { key: one.live })
      assert.equal(failed.body.error.code, 'UPSTREAM_ERROR')
      assert.equal((await send(gateway, '/v1/call/dog-images/random', { key: account.live })).status, 200)
    }
    for (let index = 0; index < 4; index += 1) {
      await send(gateway, `/v1/call/dog-images/random?extra=burst-${index}`, { key: one.live })
    }
    assert.equal((await send(gateway, '/v1/call/dog-images/random', { key: account.live })).status, 200)
    const { parts, status } = (await detail('dog-images')).health
    assert.deepEqual([parts.fail, status], [0, 'Healthy'])
  })

  it('the health of an upstream stays as it is for others while what new accounts of one network ask for makes it fail', async () => {
    const accounts = [await signUp(gateway), await signUp(gateway)]
    const network = [accounts.map(({ id }) => id)]
    await sql(gateway, `update users set signup_network = '203.0.113.7' where id = any($1)`, network)
    upstream.play('creature-game', ({ url }, response) =>
      url.includes('bad') ? void response.writeHead(500).end() : {},
    )
    for (let index = 0; index < 8; index += 1) {
      const key = accounts[index % 2]?.live ?? ''
      const { body } = await send(gateway, `/v1/call/creature-game/creature?name=bad-${index}`, { key })
      assert.equal(body.error.code, 'UPSTREAM_ERROR')
    }
  })

  it('every unit of a call that the breaker refused is given back', async () => {
    failWith('countries', 500)
    const call = () => send(gateway, '/v1/call/countries/name?name=Chile', { key: account.live })
    await until(async () => (await call()).body.error.code === 'UPSTREAM_UNAVAILABLE')
    // The worker refused some of those calls. From here on the node itself refuses.
    await until(async () => !(await call()).headers.get('server-timing')?.includes('attempts'))
    const left = ({ headers }: Answer) => [
      headers.get('x-ratelimit-remaining'),
      /"month";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1],
    ]
    const refused: Answer[] = []
    // Six calls in a row, and none of them is the attempt after the pause of the breaker.
    await until(async () => {
      const sent = upstream.arrivalsOf('countries').length
      refused.length = 0
      while (refused.length < 6) refused.push(await call())
      const areNodes = refused.every(({ headers }) => !headers.get('server-timing')?.includes('attempts'))
      return areNodes && upstream.arrivalsOf('countries').length === sent
    })
    const [first = assert.fail()] = refused
    for (const answer of refused) assert.deepEqual(left(answer), left(first))
  })

  it('the health of an upstream is not touched by a 429, a "no such thing", what a caller added, or a caller that leaves', async () => {
    const call = (signal?: AbortSignal) =>
      send(gateway, '/v1/call/currency/latest', { key: account.live, ...(signal ? { signal } : {}) })
    // Not by the counts of probes, which fade if the tests before take their time.
    upstream.play('currency', () => ({ amount: 1, base: 'EUR', date: '2026-01-02', rates: { USD: 1.1 } }))
    const pair = await send(gateway, '/v1/call/currency/pair?from=EUR&to=USD', { key: account.live })
    assert.equal(pair.status, 200, pair.text)
    await until(async () => (await detail('currency')).health.parts.ok > 0.9)
    failWith('currency', 429, { 'retry-after': '1' })
    assert.equal((await call()).body.error.code, 'UPSTREAM_RATE_LIMITED')
    for (const [status, code] of [
      [401, 'UPSTREAM_AUTH_FAILED'],
      [404, 'UPSTREAM_NOT_FOUND'],
      [400, 'UPSTREAM_REJECTED'],
    ] as const) {
      failWith('currency', status)
      const added = () => send(gateway, '/v1/call/currency/latest?undeclared=1', { key: account.live })
      await until(async () => (await added()).body.error.code === code)
    }
    const left = new AbortController()
    // If a probe is due now, it gets an answer, because no caller can leave it.
    let isAborted = false
    upstream.play('currency', ({ url }, response) => {
      if (url !== '/v1/latest') return {}
      response.once('close', () => (isAborted = true))
      return undefined
    })
    const seen = () => upstream.arrivalsOf('currency').filter(({ url }) => url === '/v1/latest').length
    const before = seen()
    const leaving = call(left.signal)
    await until(() => seen() > before)
    left.abort()
    await assert.rejects(leaving)
    // If an earlier call were like it, that call would take the request over.
    await until(() => isAborted)
    upstream.play('currency', (_arrival, response) => void response.writeHead(404).end('{"message":"not found"}'))
    const unknown = () => send(gateway, '/v1/call/currency/pair?from=EUR&to=QQQ', { key: account.live })
    await until(async () => (await unknown()).status === 404)
    await until(async () => (await detail('currency')).health.parts.ok > 1.5)
    const { health } = await detail('currency')
    assert.deepEqual([health.parts.fail, health.status, health.score], [0, 'Healthy', 100])
  })

  it('probes keep the health of an upstream if nobody calls it, and stay away if somebody does', async () => {
    const row = () => redis.hgetall(upstreamKeys.health('tech-forum'))
    // The probe process started its scheduler when it started. The answer to a probe shows that it
    // runs.
    await until(async () => (await row()).probeAt !== undefined)
    assert.ok(upstream.arrivalsOf('tech-forum').every(({ url }) => url === '/v0/maxitem.json'))
    const schedulers = await redis.zrange(laneKey('repeat'), '0', '-1')
    assert.equal(schedulers.filter((id) => id === probeScheduler('tech-forum')).length, 1)
    // If an API is not enabled, nothing probes it.
    assert.ok(!schedulers.includes(probeScheduler('news')))
    assert.deepEqual(upstream.arrivalsOf('news'), [])
  })

  it('the health of an upstream writes every change to Postgres once, whoever drains it', async () => {
    const probes = await Promise.all([
      gateway.startProcess('workers/probe.ts'),
      gateway.startProcess('workers/probe.ts'),
    ])
    assert.equal(probes.length, 2)
    const rows = await sql<{ n: string; d: string }>(
      gateway,
      'select count(*) n, count(distinct (slug, id)) d from health_changes',
    )
    assert.equal(rows[0]?.n, rows[0]?.d)
    for (const slug of SLUGS) await until(async () => (await redis.xlen(`agw:{${slug}}:health:changes`)) === 0)
  })
})
