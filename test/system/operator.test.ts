import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { compileSchemas } from '../../src/http/request/lazy-schemas.ts'
import { operate } from '../../src/operator/commands.ts'
import { SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { accountKeys, capKeys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

describe('the operator API', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let ops = ''
  let number = 0
  let redis: Redis

  before(async () => {
    upstream = await startUpstreamServer()
    const upstreams = await loadUpstreams()
    upstream.play('news', () => upstreams.get('news')?.endpoints['/top']?.example.response)
    const comments = upstreams.get('mock-data')?.endpoints['/comments']?.example.response
    upstream.play('mock-data', ({ url }) =>
      url.startsWith('/comments') ? comments : { id: 1, title: 't', body: 'b', userId: 1 },
    )
    gateway = await startGateway({
      isInProcess: true,
      webNodes: 2,
      environment: {
        ...upstream.environment('news', 'mock-data', 'creature-game', 'code-host-user'),
        UPSTREAM_NEWS_CAPS: 'concurrency=10,1000/1',
        UPSTREAM_CREATURE_GAME_CAPS: 'concurrency=1,1000/1',
        PLAN_LIMITS: '{"Free":{"perMinute":1000},"Pro":{"perMinute":1000}}',
        OPS_PORT: '0',
      },
    })
    redis = openOperatorRedis(gateway)
    ops = await gateway.startConsole()
    await compileSchemas(gateway.apps.get(ops) ?? assert.fail())
    await until(async () => (await operator('/overview')).status === 200)
  })
  after(async () => {
    redis.disconnect()
    await gateway.stop()
    await upstream.close()
  })

  const operator = (
    path: string,
    options: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
  ) => send(gateway, `/v1/operator${path}`, { ...options, token: gateway.environment.OPERATOR_TOKEN, url: ops })
  const patch = (path: string, body: unknown) => operator(path, { method: 'PATCH', body })
  /** What the command line prints. */
  const cli = async (...args: string[]) => (await command(...args)).text
  const command = (...args: string[]) => operate(['--url', ops, ...args], { ...gateway.environment, USER: 'casey' })
  /**
   * One call to each node. No call had these parameters before, so no answer is a stored answer.
   */
  const callBoth = (path: string, key: string) =>
    Promise.all(
      gateway.urls.map(async (url) => {
        number += 1
        const { status, body } = await send(gateway, `${path}${number}`, { key, url })
        return `${status} ${body.error?.code ?? ''}`.trim()
      }),
    )
  const audit = async () => (await operator('/audit')).body.records

  it('the operator API answers nobody without the operator token', async () => {
    const account = await signUp(gateway)
    for (const path of ['/users', '/upstreams', '/overview', '/audit']) {
      for (const token of [undefined, account.token, account.live, randomBytes(32).toString('base64url')]) {
        const answer = await send(gateway, `/v1/operator${path}`, { token, url: ops })
        assert.equal(answer.status, 401, `${path} ${token}`)
      }
      const onPublicPort = await send(gateway, `/v1/operator${path}`, { token: gateway.environment.OPERATOR_TOKEN })
      assert.equal(onPublicPort.status, 404)
    }
  })

  it('the operator API finds accounts by address and changes their tier at once on every node', async () => {
    const account = await signUp(gateway)
    const found = await operator(`/users?email=${encodeURIComponent(account.email.toUpperCase())}`)
    assert.deepEqual(found.body.users, [
      {
        id: account.id,
        email: account.email,
        tier: 'developer',
        plan: 'Free',
        disabled: false,
        approved: false,
        emailVerified: false,
        liveCallsNeed: null,
        createdAt: found.body.users[0].createdAt,
      },
    ])
    const path = '/v1/call/news/search?q=word'
    assert.deepEqual(await callBoth(path, account.live), Array(2).fill('402 PLAN_UPGRADE_REQUIRED'))
    assert.equal((await patch(`/users/${account.id}`, { tier: 'pro' })).body.user.plan, 'Pro')
    assert.deepEqual(await callBoth(path, account.live), Array(2).fill('503 API_NOT_ENABLED'))
    await patch(`/users/${account.id}`, { tier: 'developer' })
    assert.deepEqual(await callBoth(path, account.live), Array(2).fill('402 PLAN_UPGRADE_REQUIRED'))
  })

  it('the operator API finds an account by its id or address, however many accounts are newer or hold that address too', async () => {
    const account = await signUp(gateway)
    const many = `insert into users (id, email, password_hash) select gen_random_uuid(), 'x' || n || $1, '-' from generate_series(1, 120) n`
    await sql(gateway, many, [account.email])
    for (const subject of [account.id, account.id.toUpperCase(), account.email]) {
      const found = await operator(`/users?email=${encodeURIComponent(subject)}`)
      assert.equal(found.body.users[0]?.id, account.id, subject)
    }
    for (const query of ['%00', '%FF', 'a%40b&x=%ED%A0%80']) {
      const { status, body } = await operator(`/users?email=${query}`)
      assert.deepEqual([status, body.code], [400, 'INVALID_ENCODING'], query)
    }
    assert.equal((await operator('/users/%ED%A0%80')).status, 404)
    const shown = async (...args: string[]) => JSON.parse(await cli('account', ...args, '--json')).user
    assert.equal((await shown(account.id)).email, account.email)
    const { id, disabled } = await shown(account.email, '--disable')
    assert.deepEqual([id, disabled], [account.id, true])
    await sql(gateway, 'delete from users where email like $1', [`x%${account.email}`])
  })

  it('the operator API disables an account: keys and sessions are refused at once, and its sessions stay ended', async () => {
    const account = await signUp(gateway)
    const path = '/v1/call/mock-data/posts?id='
    const statuses = async () =>
      [
        ...(await Promise.all(gateway.urls.map((url) => send(gateway, `${path}1`, { key: account.live, url })))),
        ...(await Promise.all(gateway.urls.map((url) => send(gateway, '/v1/me', { token: account.token, url })))),
      ].map(({ status }) => status)
    assert.deepEqual(await statuses(), [200, 200, 200, 200])
    assert.equal((await patch(`/users/${account.id}`, { disabled: true })).body.user.disabled, true)
    assert.deepEqual(await statuses(), [401, 401, 401, 401])
    const login = () => send(gateway, '/v1/auth/login', { body: { email: account.email, password: account.password } })
    assert.equal((await login()).status, 401)
    await patch(`/users/${account.id}`, { disabled: false })
    assert.deepEqual(await statuses(), [200, 200, 401, 401])
    assert.equal((await login()).status, 200)
  })

  it('the operator API ends the calls of an account that it disables: what waits is never sent and costs nothing', async () => {
    upstream.play('creature-game', () => undefined)
    const [owner, other] = [await signUp(gateway), await signUp(gateway)]
    const calls = ['b', 'c', 'd', 'e'].map((name) => ({
      api: 'creature-game',
      endpoint: '/creature',
      parameters: { name },
    }))
    const call = (name: string, headers?: Record<string, string>) =>
      send(gateway, `/v1/call/creature-game/creature?name=${name}`, { key: owner.live, ...(headers && { headers }) })
    const taken = await call('a', { prefer: 'respond-async' })
    await until(() => upstream.arrivalsOf('creature-game').length === 1)
    const waiting = await call('z', { prefer: 'respond-async' })
    const headers = { accept: 'application/json' }
    const batch = send(gateway, '/v1/batch', { key: owner.live, headers, body: { calls }, url: gateway.urls[1] ?? '' })
    const inFlight = () => redis.zcard(accountKeys.inFlight(owner.id, 'live'))
    await until(async () => (await inFlight()) === 5)
    await patch(`/users/${owner.id}`, { disabled: true })
    const { results, charged } = (await batch).body
    assert.deepEqual(
      results.map(({ error }: { error?: { code: string } }) => error?.code),
      calls.map(() => 'CALL_CANCELLED'),
    )
    assert.equal(charged, 0)
    await until(async () => (await inFlight()) === 0)
    assert.equal(upstream.arrivalsOf('creature-game').length, 1)
    await patch(`/users/${owner.id}`, { disabled: false })
    for (const { headers } of [taken, waiting]) {
      const { status, body } = await send(gateway, String(headers.get('location')), { key: owner.live })
      assert.deepEqual([status, body.error.code], [409, 'CALL_CANCELLED'])
    }
    const { body } = await send(gateway, '/v1/auth/login', { body: { email: owner.email, password: owner.password } })
    const { usage } = (await send(gateway, '/v1/billing/status', { token: body.token })).body
    assert.equal(usage.used, 1, 'the one that was sent')
    upstream.play('creature-game', () => ({ id: 1, name: 'a', types: [], height: 1, weight: 1 }))
    assert.equal((await send(gateway, '/v1/call/creature-game/creature?name=f', { key: other.live })).status, 200)
  })

  it('the operator API stores a key for an upstream, which works in every process within a second, and stops working when the key is deleted', async () => {
    const account = await signUp(gateway, 'pro')
    const key = `operator-${randomBytes(12).toString('hex')}`
    const path = '/v1/call/news/search?q=word'
    assert.deepEqual(await callBoth(path, account.live), Array(2).fill('503 API_NOT_ENABLED'))
    const changed = await patch('/upstreams/news', { key })
    assert.equal(changed.status, 200, changed.text)
    assert.equal(changed.body.upstream.hasKey, true)
    assert.ok(!changed.text.includes(key))
    await until(async () => (await callBoth(path, account.live)).every((answer) => answer === '200'), 3_000)
    assert.ok(upstream.arrivalsOf('news').at(-1)?.url.includes(`apikey=${key}`))
    const [row] = await sql<{ key_sealed: Buffer }>(
      gateway,
      `select key_sealed from upstream_settings where slug = 'news'`,
    )
    assert.ok(row && !row.key_sealed.includes(key))
    await patch('/upstreams/news', { key: null })
    // If the API is enabled without a key, it serves callers that bring a key, and says so.
    const opened = await cli('upstream', 'news', '--enable')
    assert.match(opened, /^news +for callers' keys /m)
    assert.match(await cli('reset', 'news'), /^news +needs a key /m)
    await until(
      async () => (await callBoth(path, account.live)).every((answer) => answer === '503 API_NOT_ENABLED'),
      3_000,
    )
  })

  it('the operator API changes tier, caps and whether an upstream is on, in every process', async () => {
    const account = await signUp(gateway)
    const path = '/v1/call/mock-data/posts?id='
    const call = async () => (await callBoth('/v1/call/mock-data/comments?n=', account.live)).join()
    assert.equal(await call(), '200,200')
    await patch('/upstreams/mock-data', { tierRequired: 'business' })
    await until(async () => (await call()) === '402 PLAN_UPGRADE_REQUIRED,402 PLAN_UPGRADE_REQUIRED', 3_000)
    await patch('/upstreams/mock-data', { tierRequired: null, enabled: false })
    await until(async () => (await call()) === '503 API_NOT_ENABLED,503 API_NOT_ENABLED', 3_000)
    const catalog = await send(gateway, '/v1/catalog')
    assert.ok(!catalog.body.data.some((api: { api_name: string }) => api.api_name === 'mock-data'))
    await patch('/upstreams/weather', { enabled: false })
    await until(async () => (await fetch(`${gateway.url}/apis/weather`)).status === 404)
    const { paths } = JSON.parse(await (await fetch(`${gateway.url}/openapi.json`)).text())
    assert.ok(paths['/v1/call/currency/latest'] && !paths['/v1/call/weather/current'])
    assert.ok(!paths['/v1/catalog/{slug}'].get.parameters[0].schema.enum.includes('weather'))
    // A newcomer is sent to an API that exists.
    const [, start = ''] = /data-start="([^"]*)"/.exec(await (await fetch(`${gateway.url}/signup`)).text()) ?? []
    assert.match(start, /^\/apis\//)
    assert.equal((await fetch(gateway.url + start)).status, 200)
    await patch('/upstreams/weather', { enabled: null })
    const rates = [{ max: 2, seconds: 3_600 }]
    const changed = await patch('/upstreams/mock-data', { enabled: null, caps: { rates } })
    assert.deepEqual(changed.body.upstream.caps.rates, rates)
    // Two an hour, for all calls of all nodes together.
    await until(async () => (await call()).includes('503 UPSTREAM_CAP_EXHAUSTED'), 5_000)
    const before = upstream.arrivalsOf('mock-data').length
    for (let index = 0; index < 5; index += 1) await callBoth(path, account.live)
    assert.equal(upstream.arrivalsOf('mock-data').length, before)
    await patch('/upstreams/mock-data', { caps: null })
    await until(async () => (await send(gateway, `${path}2`, { key: account.live })).status === 200, 5_000)
  })

  it('the operator API gives an account that lost its password a new password, which ends its sessions and no key', async () => {
    const account = await signUp(gateway)
    const [, password = ''] = /shown this once: (\S+)$/m.exec(await cli('new-password', account.email)) ?? []
    const logIn = (given: string) =>
      send(gateway, '/v1/auth/login', { body: { email: account.email, password: given } })
    assert.equal((await logIn(account.password)).status, 401)
    assert.equal((await logIn(password)).status, 200)
    await until(async () => (await send(gateway, '/v1/me', { token: account.token })).status === 401)
    assert.equal((await send(gateway, '/v1/call/mock-data/posts?id=1', { key: account.test })).status, 200)
    const [record] = JSON.parse(await cli('audit', '--limit', '1', '--json')).records
    assert.deepEqual([record.action, record.subject], ['user.password', account.id])
    assert.ok(!JSON.stringify(record).includes(password))
    await cli('account', account.email, '--disable')
    const [, ofDisabled = '', note] =
      /shown this once: (\S+)\n(.*)$/m.exec(await cli('new-password', account.email)) ?? []
    assert.equal(note, `The account is disabled. It logs in once it is enabled: account ${account.email} --enable`)
    assert.notEqual((await logIn(ofDisabled)).status, 200)
    await cli('account', account.email, '--enable')
    assert.equal((await logIn(ofDisabled)).status, 200)
    const unknown = '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'
    const none = await operator(`/users/${unknown}/password`, { method: 'POST' })
    assert.deepEqual([none.status, none.body.code], [404, 'USER_NOT_FOUND'])
  })

  it('the operator API makes a change completely or not at all', async () => {
    const list = async () => (await operator('/upstreams')).body.upstreams
    const before = await list()
    for (const body of [
      {},
      { enabled: 'yes' },
      { tierRequired: 'gold' },
      { tierRequired: 'pro', caps: { concurrency: 0 } },
      { caps: { rates: [{ max: 1 }] } },
      { caps: { rates: [{ max: -1, seconds: 1 }] } },
      { tierRequired: 'pro', key: 'with blank' },
      { tierRequired: 'pro', unknown: 1 },
    ]) {
      const { status, body: answer } = await patch('/upstreams/weather', body)
      assert.deepEqual([status, answer.code], [400, 'VALIDATION_ERROR'], JSON.stringify(body))
    }
    assert.equal((await patch('/upstreams/dog-images', { key: 'k' })).status, 400)
    assert.equal((await patch('/upstreams/none', { enabled: false })).body.code, 'API_NOT_FOUND')
    assert.equal((await patch(`/users/${randomUUID()}`, { tier: 'pro' })).body.code, 'USER_NOT_FOUND')
    const none = (await patch('/users/none', { tier: 'pro' })).body
    assert.deepEqual([none.code, none.message], ['USER_NOT_FOUND', 'No account has this id.'])
    assert.equal((await patch(`/users/${randomUUID()}`, { tier: 'pro' })).body.message, 'No account has this id.')
    for (const body of [{}, { tier: 'gold' }, { disabled: 1 }, { email: 'a@b.c' }]) {
      assert.equal((await patch(`/users/${randomUUID()}`, body)).status, 400)
    }
    assert.deepEqual(await list(), before)
  })

  it('the operator API approves an account: its live calls are answered from then on, its test calls always', async () => {
    const url = await gateway.startWeb({ SIGNUP: 'approval' })
    const { services, urls, apps, environment } = gateway
    const account = await signUp({ services, urls, apps, environment, url })
    const call = (key: string) => send(gateway, '/v1/call/mock-data/users?id=3', { key, url })
    const refused = await call(account.live)
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'FORBIDDEN'])
    assert.match(refused.body.error.message, /approved/)
    assert.equal((await call(account.test)).status, 200)
    assert.match(await cli('account', account.email), /Free +unverified/)
    const { body } = await patch(`/users/${account.id}`, { approved: true })
    assert.deepEqual([body.user.approved, body.user.emailVerified], [true, false])
    assert.match(await cli('account', account.email), /Free +approved[\s\S]+The approval does not verify its email/)
    assert.notEqual((await call(account.live)).status, 403)
    await cli('account', account.email, '--disapprove')
    assert.equal((await call(account.live)).status, 403)
  })

  it('the operator API pauses an upstream: calls are refused at once, or wait if they are to be held, until it is resumed', async () => {
    const account = await signUp(gateway)
    const act = (action: string, body?: object) => operator(`/upstreams/mock-data/${action}`, { method: 'POST', body })
    const call = (key: string) => send(gateway, '/v1/call/mock-data/users?id=3', { key })
    assert.equal((await operator('/upstreams/none/pause', { method: 'POST' })).status, 404)
    assert.equal((await act('pause', { mode: 'forget' })).status, 400)
    assert.equal((await act('pause')).status, 200)
    await until(async () => (await call(account.live)).body.error?.code === 'API_PAUSED', 3_000)
    const refused = await call(account.test)
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '30'])
    const shown = async () => {
      const { body } = await send(gateway, '/v1/catalog/mock-data', { key: account.live })
      const list = (await send(gateway, '/v1/catalog')).body.data
      const { health_score } = list.find(({ api_name }: { api_name: string }) => api_name === 'mock-data')
      return [body.health.status, body.health.score, body.now.health, health_score]
    }
    assert.deepEqual(await shown(), ['Down', 0, 'Down', 0])
    await act('pause', { mode: 'hold' })
    assert.deepEqual(await shown(), ['Down', 0, 'Down', 0])
    const paused = async () => (await operator('/upstreams')).body.upstreams.find(ofMockData).paused
    const ofMockData = ({ slug }: { slug: string }) => slug === 'mock-data'
    assert.equal(await paused(), 'hold')
    let [isAnswered, isHeld] = [false, false]
    // The first call that is no longer refused waits.
    const waiting = (async () => {
      for (;;) {
        const answer = await call(account.test)
        if (answer.body.error?.code !== 'API_PAUSED' || isHeld) return answer
      }
    })().finally(() => {
      isAnswered = true
    })
    const queueOf = async () => (await operator('/overview')).body.upstreams.find(ofMockData).queue
    await until(async () => (await queueOf()).waiting === 1)
    isHeld = true
    assert.equal(isAnswered, false)
    // The API now refuses calls, so calls that waited get the refusal at once and not at their
    // deadline.
    assert.equal((await act('pause')).status, 200)
    const answer = await waiting
    assert.deepEqual([answer.body.error?.code, answer.headers.get('retry-after')], ['API_PAUSED', '30'])
    assert.equal((await act('resume')).status, 200)
    assert.equal(await paused(), null)
    await until(async () => (await shown())[0] === 'Healthy')
    const [last] = await audit()
    assert.deepEqual([last.before, last.after], [{ paused: 'refuse' }, { paused: null }])
  })

  it('the operator API keeps calls from an upstream that it pauses or switches off, including calls that wait for a permit by then', async () => {
    const account = await signUp(gateway)
    const shut = { refuse: 'API_PAUSED', off: 'API_NOT_ENABLED' }
    const waiters = { refuse: 'g', off: 'h' }
    for (const how of ['refuse', 'off'] as const) {
      const under = Promise.withResolvers<unknown>()
      upstream.play('creature-game', () => under.promise)
      const call = (name: string) =>
        send(gateway, `/v1/call/creature-game/creature?name=${name}`, { key: account.live, url: gateway.urls[0] ?? '' })
      // The arrivals are not compared, because a slow machine may repeat the first call meanwhile.
      const wasSent = (name: string) => upstream.arrivalsOf('creature-game').some(({ url }) => url.endsWith(`/${name}`))
      const first = call(`${waiters[how]}1`)
      await until(() => wasSent(`${waiters[how]}1`))
      const second = call(`${waiters[how]}2`)
      await until(async () => (await redis.zcard(capKeys.of('creature-game', SHARED_BUCKET, 'waiters'))) === 1)
      if (how === 'refuse')
        await operator('/upstreams/creature-game/pause', { method: 'POST', body: { mode: 'refuse' } })
      // If a worker knows of the place for the second call, it knows that it must not make the
      // call.
      await patch('/upstreams/creature-game', { caps: { concurrency: 2 }, ...(how === 'off' && { enabled: false }) })
      assert.equal((await second).body.error?.code, shut[how])
      assert.equal(wasSent(`${waiters[how]}2`), false)
      under.resolve({ id: 1, name: 'a', types: [], height: 1, weight: 1 })
      assert.equal((await first).status, 200)
      // In this order, because every worker knows of a resumption before its request is answered.
      await patch('/upstreams/creature-game', { caps: null, enabled: null })
      if (how === 'refuse') await operator('/upstreams/creature-game/resume', { method: 'POST' })
      await until(async () => (await call('j')).status === 200)
    }
  })

  it('the operator API probes an upstream on request', async () => {
    const before = upstream.arrivalsOf('mock-data').length
    const { status, body } = await operator('/upstreams/mock-data/probe', { method: 'POST' })
    assert.deepEqual([status, body.outcome.status, body.outcome.code], [200, 200, null])
    assert.match(body.outcome.words, /^HTTP 200 in \d+ ms$/)
    await until(() => upstream.arrivalsOf('mock-data').length > before)
  })

  it('a probe that waits for the cap says how long its source took, and not how long it waited', async () => {
    await patch('/upstreams/mock-data', { caps: { concurrency: 4, rates: [{ max: 1, seconds: 1 }] } })
    const probe = async () => (await operator('/upstreams/mock-data/probe', { method: 'POST' })).body.outcome
    let [ms, tookMs] = [0, 0]
    // A worker may learn of the cap a moment later. Then the second probe waits for its permit.
    await until(async () => {
      const beganAt = performance.now()
      const outcomes = [await probe(), await probe()]
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        [200, 200],
      )
      ;[ms, tookMs] = [outcomes[1].ms, performance.now() - beganAt]
      return tookMs >= 1_000
    })
    assert.ok(ms <= tookMs - 1_000, `${ms} of ${tookMs} ms`)
    await patch('/upstreams/mock-data', { caps: null })
  })

  it('the operator API refuses a probe that would not be sent, and says what to do first', async () => {
    const probe = async (slug: string) => {
      const { status, body } = await operator(`/upstreams/${slug}/probe`, { method: 'POST' })
      return `${status} ${body.code} ${body.message}`
    }
    assert.match(await probe('news'), /^503 API_NOT_ENABLED .* no key of its own for this API\. Set a key/)
    await patch('/upstreams/mock-data', { enabled: false })
    assert.match(await probe('mock-data'), /^503 API_NOT_ENABLED An operator disabled this API\. Enable it/)
    await patch('/upstreams/mock-data', { enabled: null })
    await operator('/upstreams/mock-data/pause', { method: 'POST', body: { mode: 'hold' } })
    assert.match(await probe('mock-data'), /^503 API_PAUSED .* Resume it before you probe it/)
    await operator('/upstreams/mock-data/resume', { method: 'POST' })
  })

  it('the answers for a call that an operator holds have its place in the queue, and no time at which it would be sent', async () => {
    const { live } = await signUp(gateway)
    await operator('/upstreams/mock-data/pause', { method: 'POST', body: { mode: 'hold' } })
    // A node learns of the pause within a second.
    await until(async () => (await send(gateway, '/v1/catalog/mock-data')).body.health.status === 'Down')
    const headers = { prefer: 'respond-async' }
    const started = await send(gateway, '/v1/call/mock-data/users?id=3&held=1', { key: live, headers })
    assert.deepEqual(Object.keys(started.body), ['status', 'id', 'location'])
    const seen = await send(gateway, started.body.location, { key: live })
    assert.deepEqual(Object.keys(seen.body), ['status', 'id', 'position'])
    assert.equal(seen.body.position, 0)
    const { now, limits } = (await send(gateway, '/v1/catalog/mock-data', { key: live })).body
    assert.deepEqual([now.waitMs, now.limitedBy, limits.nextSlotMs], [null, 'operator', null])
    assert.equal((await send(gateway, started.body.location, { method: 'DELETE', key: live })).status, 204)
    await operator('/upstreams/mock-data/resume', { method: 'POST' })
  })

  it('the operator API shows queues, caps left, health and processes', async () => {
    await until(async () => (await operator('/overview')).body.processes.length >= 4)
    const { body } = await operator('/overview')
    assert.equal(body.upstreams.length, (await loadUpstreams()).size)
    const kinds = body.processes.map(({ kind }: { kind: string }) => kind)
    assert.deepEqual([...new Set(kinds)].sort(), ['ops', 'web', 'worker'])
    const search = body.upstreams.find(({ slug }: { slug: string }) => slug === 'code-host-search')
    assert.deepEqual(search.caps.rates, [{ max: 10, seconds: 60, left: 10 }])
    assert.equal(search.health.status, 'Healthy')
  })

  it('the operator API records who changed what and when, with the values before and after, and never a key', async () => {
    const account = await signUp(gateway)
    const key = `operator-${randomBytes(12).toString('hex')}`
    await operator(`/users/${account.id}`, {
      method: 'PATCH',
      body: { tier: 'business' },
      headers: { 'x-operator': 'robin' },
    })
    await operator('/upstreams/weather', { method: 'PATCH', body: { key, tierRequired: 'pro' } })
    const [second, first] = await audit()
    assert.deepEqual(
      { ...first, id: '', at: '' },
      {
        id: '',
        at: '',
        actor: 'robin (127.0.0.1)',
        action: 'user.update',
        subject: account.id,
        before: { tier: 'developer', disabled: false, approved: false },
        after: { tier: 'business', disabled: false, approved: false },
      },
    )
    assert.ok(Math.abs(Date.parse(first.at) - Date.now()) < 60_000)
    assert.equal(second.subject, 'weather')
    assert.deepEqual(second.before, { enabled: null, tierRequired: null, caps: null, key: null })
    assert.deepEqual(second.after, { enabled: null, tierRequired: 'pro', caps: null, key: 'set' })
    assert.ok(!JSON.stringify(await audit()).includes(key))
    await patch('/upstreams/weather', { key: null, tierRequired: null })
  })

  it('the command line can do everything that the operator API can do', async () => {
    const account = await signUp(gateway)
    assert.match(await cli('--help'), /npm run operator -- <command>/)
    assert.match(await cli('accounts', account.email), new RegExp(account.id))
    assert.match(await cli('accounts', account.email, '--unapproved'), new RegExp(account.id))
    await cli('account', account.email, '--tier', 'pro')
    assert.equal((await send(gateway, '/v1/me', { token: account.token })).body.tier, 'pro')
    await cli('upstream', 'trivia', '--caps', 'concurrency=3,7/60', '--tier', 'pro')
    const { upstreams } = JSON.parse(await cli('upstreams', '--json'))
    const trivia = upstreams.find(({ slug }: { slug: string }) => slug === 'trivia')
    assert.deepEqual(trivia.caps, { concurrency: 3, rates: [{ max: 7, seconds: 60 }] })
    assert.equal(trivia.tierRequired, 'pro')
    await cli('reset', 'trivia')
    await cli('pause', 'trivia')
    await cli('resume', 'trivia')
    const actions = JSON.parse(await cli('audit', '--limit', '4', '--json')).records
    assert.deepEqual(
      actions.map(({ action, actor }: { action: string; actor: string }) => [action, actor]),
      ['upstream.resume', 'upstream.pause', 'upstream.update', 'upstream.update'].map((action) => [
        action,
        'casey (127.0.0.1)',
      ]),
    )
    assert.match(await cli('audit'), /^\d{4}-\d\d-\d\d \d\d:\d\d {2}casey \(127\.0\.0\.1\) +upstream\.resume /m)
    assert.match(await cli('overview'), /^trivia /m)
    assert.match(await cli('queue', 'trivia'), /^trivia: 0 calls here, \d workers? serves? it\./)
    assert.match(await cli('upstream', 'trivia'), /^trivia +enabled +developer/m)
    assert.match(await cli('account', account.email), /^[^ ]+ +pro +Pro +unverified/m)
    await assert.rejects(cli('upstream', 'trivia', '--key-file', '/nope'), /--key-file: \/nope cannot be read\.$/)
    await assert.rejects(cli('upstream', 'trivia', '--key-file', '/dev/null'), /--key-file: \/dev\/null is empty\.$/)
    await assert.rejects(cli('call', ''), /This command needs the id of a call/)
    await assert.rejects(cli('call', `call_${'0'.repeat(32)}`), /404 CALL_NOT_FOUND: .+\. Use the X-Call-Id .+\.$/)
    await assert.rejects(cli('pause', 'trivai'), /404 API_NOT_FOUND: .+ did you mean trivia\? .+ GET \/v1\/catalog\.$/)
    await cli('pause', 'trivia')
    // Calls of the tests before were refused. So the command says that callers fail, and ends with
    // 1.
    let status = await command('status')
    // The console reads the fleet once a second.
    await until(async () => {
      status = await command('status')
      return status.text.includes('[Paused] trivia is paused by an operator')
    })
    const { problems } = JSON.parse(await cli('overview', '--json'))
    assert.equal(
      status.code === 1,
      problems.some(({ rank }: { rank: number }) => rank === 0),
    )
    await cli('resume', 'trivia')
    await assert.rejects(
      operate(['--url', ops, 'status'], { OPERATOR_TOKEN: account.live }),
      /: The operator API at http:\S+ refuses the token of OPERATOR_TOKEN in the environment: 401 INVALID_TOKEN\.$/,
    )
    await assert.rejects(
      operate(['--url', gateway.url, 'status'], gateway.environment),
      /: There is no operator API at http:\S+\. --url is the address of the console, /,
    )
    await assert.rejects(operate(['nosuch'], { DATA_DIR: '/nonexistent' }), /There is no command nosuch/)
    await assert.rejects(cli('account', 'nobody@example.com', '--tier', 'pro'), /No account has the email/)
    await assert.rejects(cli('upstream', 'trivia', '--tier', 'gold'), /--tier must be one of/)
    await assert.rejects(cli('frobnicate'), /There is no command/)
    await assert.rejects(cli('pause', 'trivia', 'for', 'a', 'while'), /Nothing was done: pause accepts one argument/)
  })

  it('a notice of an operator is shown on the pages of each node and of the console until its end', async () => {
    const PAGES = ['/', '/apis/weather', '/account', '/docs/guides/quickstart', '/docs/search?q=key', '/no-such-page']
    const pages = () => Promise.all(gateway.urls.flatMap((url) => PAGES.map((path) => pageText(url, path))))
    const text = 'No calls from 4 to 5 <UTC>: we move.'
    const end = new Date(Date.now() + 3_600_000).toISOString()
    assert.match(await cli('notice', text, '--until', end), /^Shown until 20.*: No calls from 4 to 5/)
    const isShown = (page: string) => /No calls from 4 to 5 &(?:#60|lt);UTC&(?:#62|gt);: we move\./.test(page)
    await until(async () => (await pages()).every(isShown))
    await until(async () => isShown(await pageText(ops, '/', gateway.environment.OPERATOR_TOKEN)))
    // The notice ends at its time without an operator.
    await cli('notice', text, '--until', new Date(Date.now() + 2_000).toISOString())
    await until(async () => !(await pages()).some(isShown))
    await cli('notice', text, '--until', end)
    assert.match(await cli('notice'), /we move/)
    await until(async () => (await pages()).every(isShown))
    assert.equal(await cli('notice', '--end'), 'The pages show no notice.')
    await until(async () => !(await pages()).some(isShown))
    // The form of the console does the same.
    const headers = { authorization: `Bearer ${gateway.environment.OPERATOR_TOKEN}`, accept: 'text/html' }
    const form = async (fields: Record<string, string>) => {
      const sent = { method: 'POST', headers, body: new URLSearchParams(fields), redirect: 'manual' } as const
      return (await fetch(`${ops}/notice`, sent)).status
    }
    assert.equal(await form({ text, until: end.slice(0, 16) }), 303)
    assert.ok(isShown(await pageText(ops, '/', gateway.environment.OPERATOR_TOKEN)))
    await until(async () => (await pages()).every(isShown))
    const blank = { text: '  ', until: end.slice(0, 16) }
    for (const fields of [{ text }, { text, until: 'soon' }, { text, until: '2020-01-01T00:00' }, blank])
      assert.equal(await form(fields), 400)
    assert.equal(await form({}), 303)
    await until(async () => !(await pages()).some(isShown))
    const [record] = (await operator('/audit?action=notice&limit=1')).body.records
    assert.deepEqual([record.before.notice.text, record.after.notice], [text, null])
    await assert.rejects(
      cli('notice', text, '--until', '2020-01-01T00:00:00Z'),
      /VALIDATION_ERROR: The end of a notice/,
    )
    await assert.rejects(cli('notice', text, '--until', 'soon'), /--until must be a time such as/)
    await assert.rejects(cli('notice', text), /This command needs --until/)
    await assert.rejects(cli('notice', '--until', end), /Nothing was done: --until needs a text/)
    await assert.rejects(cli('notice', text, '--end'), /Nothing was done: --end cannot be used with a text/)
  })

  const pageText = async (url: string, path: string, token?: string): Promise<string> => {
    const headers = { accept: 'text/html', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) }
    return await (await fetch(url + path, { headers })).text()
  }
})
