import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { VALIDATE_KEY } from '../../src/queue/validate-key-job.ts'
import { UNPROVEN_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys, keys } from '../../src/redis/keys.ts'
import { type Account, send, signUp, sql } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { LANE, laneKey } from '../support/lane.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const NEWS = '/v1/call/news/top'

describe('provider keys', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let newsAnswer: unknown
  let userAnswer: unknown
  /** Keys that the upstreams take. */
  const taken = new Set<string>()
  const secret = (marker: string) => `pk-${marker}-${randomBytes(12).toString('hex')}`

  before(async () => {
    const upstreams = await loadUpstreams()
    newsAnswer = upstreams.get('news')?.endpoints['/top']?.example.response
    userAnswer = upstreams.get('code-host-user')?.endpoints['/profile']?.example.response
    stage = await startStage({
      isInProcess: true,
      webNodes: 2,
      caps: { news: 'concurrency=10,1000/1', 'code-host-user': undefined },
      environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000},"Pro":{"perMinute":1000,"inFlight":200}}' },
    })
    ;({ gateway, upstream } = stage)
  })
  after(() => stage.stop())

  beforeEach(async () => {
    await forgetUnproven()
    account = await signUp(gateway, 'pro')
    playNews()
    playUser()
  })

  const put = (slug: string, key: unknown, token = account.token) =>
    send(gateway, `/v1/provider-keys/${slug}`, { method: 'PUT', token, body: { key } })
  const recordOf = async (slug: string) => {
    const { body } = await send(gateway, '/v1/provider-keys', { token: account.token })
    return body.providerKeys.find(({ apiSlug }: { apiSlug: string }) => apiSlug === slug)
  }
  const statusOf = async (slug: string) => (await recordOf(slug))?.status
  /** Requests of earlier tests with keys that the upstreams had not accepted no longer count. */
  async function forgetUnproven(): Promise<void> {
    const redis = new Redis(gateway.services.redisUrl)
    for (const slug of ['news', 'code-host-user']) await redis.del(capKeys.all(slug, UNPROVEN_BUCKET))
    redis.disconnect()
  }

  function playNews(): void {
    upstream.play('news', ({ url }, response) => {
      const key = new URL(url, 'http://upstream').searchParams.get('apikey')
      if (key !== null && taken.has(key)) return newsAnswer
      return void response.writeHead(401, { 'content-type': 'application/json' }).end('{"errors":["bad key"]}')
    })
  }

  function playUser(): void {
    upstream.play('code-host-user', ({ headers }, response) => {
      const key = headers.authorization?.replace(/^\w+ /, '')
      if (key === undefined || taken.has(key)) return userAnswer
      return void response.writeHead(401, { 'content-type': 'application/json' }).end('{"message":"Bad credentials"}')
    })
  }

  async function withQueue<T>(use: (queue: Queue) => Promise<T>): Promise<T> {
    const connection = new Redis(gateway.services.redisUrl, { maxRetriesPerRequest: null })
    const queue = new Queue(LANE.name, { connection, prefix: LANE.prefix })
    try {
      return await use(queue)
    } finally {
      await queue.close()
      connection.disconnect()
    }
  }

  /** Runs the validations that wait for their next time at once, until none is left. */
  async function endValidations(): Promise<void> {
    await withQueue(async (queue) => {
      await until(async () => {
        for (const job of await queue.getDelayed()) {
          // Another worker may have begun it meanwhile.
          if (job.name === VALIDATE_KEY) await job.promote().catch(() => undefined)
        }
        const left = await queue.getJobs(['delayed', 'waiting', 'active'])
        return left.every((job) => job?.name !== VALIDATE_KEY)
      })
    })
  }

  const call = (path: string, key = account.live, url = gateway.url) => send(gateway, path, { key, url })

  /**
   * The setting of an operator who has no key and lets callers bring theirs. Afterwards every
   * process knows it.
   */
  async function enableNews(): Promise<void> {
    await sql(gateway, "insert into upstream_settings (slug, enabled) values ('news', true)")
    const redis = new Redis(gateway.services.redisUrl)
    await redis.set(keys.settingsVersion, randomUUID())
    redis.disconnect()
    for (const url of gateway.urls) await until(async () => (await call(NEWS, account.live, url)).status === 200)
  }

  it('provider keys are saved masked, found valid by the upstream, and make an enabled API work that needs a key', async () => {
    const refused = await call(NEWS)
    assert.deepEqual([refused.status, refused.body.error.code], [503, 'API_NOT_ENABLED'])
    const key = secret('good')
    taken.add(key)
    const { status, body } = await put('news', key)
    assert.equal(status, 200)
    assert.deepEqual(body, {
      apiSlug: 'news',
      displayName: 'News',
      accessMode: 'byok_available',
      status: body.status,
      maskedKey: `********${key.slice(-4)}`,
      savedAt: body.savedAt,
      lastValidatedAt: null,
      validationFailure: null,
    })
    assert.equal(body.status, 'unvalidated')
    await until(async () => (await statusOf('news')) === 'valid')
    // If the operator has not enabled an API, a caller's key does not open it.
    assert.equal((await call(NEWS)).body.error.code, 'API_NOT_ENABLED')
    await enableNews()
    for (const url of gateway.urls) assert.equal((await call(NEWS, account.live, url)).status, 200)
    const { text } = await send(gateway, '/v1/provider-keys', { token: account.token })
    assert.ok(!text.includes(key))
  })

  it('provider keys that hold a key of this service are refused, and no upstream sees them', async () => {
    upstream.arrivals.length = 0
    for (const key of [account.live, `Bearer:${account.live}`, account.live.toUpperCase()]) {
      const { status, body } = await put('code-host-user', key)
      assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], key)
      assert.match(body.hint, /param=key/)
    }
    assert.equal(await recordOf('code-host-user'), undefined)
    await endValidations()
    assert.deepEqual(upstream.arrivalsOf('code-host-user'), [])
  })

  it('provider keys that the upstream refuses are invalid, refuse calls, and are replaced by another', async () => {
    await put('news', secret('bad'))
    await until(async () => (await statusOf('news')) === 'invalid')
    const before = upstream.arrivalsOf('news').length
    const refused = await call(NEWS)
    assert.deepEqual([refused.status, refused.body.error.code], [400, 'PROVIDER_KEY_INVALID'])
    assert.equal(upstream.arrivalsOf('news').length, before)
    const good = secret('replacement')
    taken.add(good)
    assert.equal((await put('news', good)).body.status, 'unvalidated')
    await until(async () => (await statusOf('news')) === 'valid')
    assert.equal((await call(NEWS)).status, 200)
  })

  it('a provider key that the upstream no longer accepts becomes invalid, and its call gets 400', async () => {
    const key = secret('expiring')
    taken.add(key)
    await put('news', key)
    await until(async () => (await statusOf('news')) === 'valid')
    taken.delete(key)
    const refused = await call('/v1/call/news/search?q=anything')
    assert.deepEqual([refused.status, refused.body.error.code], [400, 'PROVIDER_KEY_INVALID'], refused.text)
    assert.ok(!refused.text.includes('bad key'))
    await until(async () => (await statusOf('news')) === 'invalid')
  })

  it('a provider key that the upstream refuses for many calls at once is validated once, and not once for each call', async () => {
    const key = secret('shared')
    taken.add(key)
    await put('news', key)
    await until(async () => (await statusOf('news')) === 'valid')
    // The answer is held back, so that all calls are refused before the first validation has its
    // answer.
    const answers = Promise.withResolvers<void>()
    upstream.play('news', async ({ url }, response) => {
      if (!url.includes('/search')) await answers.promise
      return void response.writeHead(401, { 'content-type': 'application/json' }).end('{"errors":["bad key"]}')
    })
    const validations = () =>
      upstream.arrivalsOf('news').filter(({ url }) => url.includes(key) && !url.includes('q=')).length
    const before = validations()
    const calls = Array.from({ length: 20 }, (_, index) => call(`/v1/call/news/search?q=${index}`))
    for (const { status, text } of await Promise.all(calls)) assert.equal(status, 400, text)
    await until(() => validations() > before)
    answers.resolve()
    await until(async () => (await statusOf('news')) === 'invalid')
    const client = new Redis(gateway.services.redisUrl)
    await until(async () => (await client.exists(laneKey('active'), laneKey('wait'))) === 0)
    client.disconnect()
    assert.equal(validations() - before, 1)
  })

  it('provider keys stay as they are while the upstream is unreachable, and their owner reads that they could not be checked', async () => {
    const key = secret('waiting')
    taken.add(key)
    upstream.play('news', (_, response) => void response.writeHead(503).end())
    await put('news', key)
    const validate = () => send(gateway, '/v1/provider-keys/news/validate', { method: 'POST', token: account.token })
    const { status, body } = await validate()
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.status, 'unvalidated')
    assert.equal(body.lastValidatedAt, null)
    const { code, message, at, nextAt } = body.validationFailure
    assert.ok(['UPSTREAM_ERROR', 'UPSTREAM_UNAVAILABLE'].includes(code), code)
    assert.equal(
      message,
      'News did not give a usable answer, so the key could not be checked. The key is saved. The gateway checks it again within a minute.',
    )
    assert.ok(Date.parse(nextAt) > Date.parse(at))
    // If an upstream stays down, it uses up the checks.
    await endValidations()
    const { validationFailure: last } = (await recordOf('news')) ?? assert.fail()
    assert.equal(last.nextAt, null)
    assert.match(last.message, /The key is saved\. Validate it again when News answers\.$/)
    // A failure of the upstream is no defect of the gateway.
    assert.deepEqual(await withQueue((queue) => queue.getJobCounts('failed')), { failed: 0 })
    assert.equal((await put('news', key)).body.validationFailure, null)
  })

  it('provider keys are not tried at an upstream that operators paused or switched off', async (t) => {
    const redis = new Redis(gateway.services.redisUrl)
    t.after(() => redis.disconnect())
    const set = async (settings: string) => {
      await sql(gateway, "delete from upstream_settings where slug = 'code-host-user'")
      await sql(gateway, `insert into upstream_settings (slug, ${settings})`)
      await redis.set(keys.settingsVersion, randomUUID())
      // An account may save twenty a minute.
      account = await signUp(gateway, 'pro')
    }
    const isTried = async () => {
      const before = upstream.arrivalsOf('code-host-user').length
      assert.equal((await put('code-host-user', secret('shut'))).status, 200)
      await until(async () => (await redis.exists(laneKey('wait'), laneKey('active'), laneKey('delayed'))) === 0)
      return upstream.arrivalsOf('code-host-user').length > before
    }
    for (const [settings, code, message] of [
      [
        "paused_mode) values ('code-host-user', 'refuse'",
        'API_PAUSED',
        /^The operator paused .* when it is resumed\.$/,
      ],
      [
        "enabled) values ('code-host-user', false",
        'API_NOT_ENABLED',
        /^The operator switched .* off, .* when it is on again\.$/,
      ],
    ] as const) {
      await set(settings)
      // The worker knows it within a second.
      const failure = async () => (await recordOf('code-host-user')).validationFailure
      await until(async () => !(await isTried()) && (await failure())?.code === code)
      assert.equal((await failure()).nextAt, null)
      assert.match((await failure()).message, message)
    }
    await set("enabled) values ('code-host-user', true")
    await until(isTried)
  })

  it('provider keys that are saved or checked while operators hold the API say so, and are checked when it is resumed', async (t) => {
    const redis = new Redis(gateway.services.redisUrl)
    const setHold = async (isHeld: boolean) => {
      await sql(gateway, "delete from upstream_settings where slug = 'code-host-user'")
      if (isHeld)
        await sql(gateway, "insert into upstream_settings (slug, paused_mode) values ('code-host-user', 'hold')")
      await redis.set(keys.settingsVersion, randomUUID())
      await withQueue((queue) => (isHeld ? queue.pause() : queue.resume()))
      const page = async (url: string) => (await fetch(`${url}/apis/code-host-user`)).text()
      for (const url of gateway.urls) await until(async () => (await page(url)).includes('Paused') === isHeld)
    }
    const check = () =>
      send(gateway, '/v1/provider-keys/code-host-user/validate', { method: 'POST', token: account.token })
    await setHold(true)
    t.after(async () => {
      await setHold(false)
      redis.disconnect()
    })
    const key = secret('held')
    taken.add(key)
    for (const { body } of [await put('code-host-user', key), await check(), await check()]) {
      assert.equal(body.status, 'unvalidated')
      assert.equal(body.validationFailure?.code, 'API_PAUSED')
      assert.match(
        body.validationFailure.message,
        /^The operator paused .*\. The key is saved\. The gateway checks it when the operator resumes .*\.$/,
      )
    }
    // One job for the saved key, and one job for all checks.
    assert.equal(await withQueue((queue) => queue.getJobCountByTypes('waiting')), 2)
    await setHold(false)
    await until(async () => (await statusOf('code-host-user')) === 'valid')
    assert.equal((await recordOf('code-host-user')).validationFailure, null)
    // If a key was checked before, its state stays, and its answer also says that the API is
    // paused.
    await endValidations()
    await setHold(true)
    const { body } = await check()
    assert.deepEqual([body.status, body.validationFailure?.code], ['valid', 'API_PAUSED'])
    await setHold(false)
    await until(async () => (await recordOf('code-host-user')).validationFailure === null)
  })

  it('provider keys of new accounts of one network are tried ten times an hour together, not each', async () => {
    const accounts = [account, await signUp(gateway)]
    const ids = accounts.map(({ id }) => id)
    await sql(gateway, "update users set tier = 'developer', signup_network = '203.0.113.9' where id = any($1)", [ids])
    const statuses: number[] = []
    let last = ''
    for (let index = 0; index < 12; index += 1) {
      const { status, body } = await put('code-host-user', secret('many'), accounts[index % 2]?.token)
      statuses.push(status)
      last = body.hint
    }
    assert.deepEqual(statuses.slice(9), [200, 429, 429])
    // A higher plan has no more of them.
    assert.match(last, /^Wait before saving or validating more provider keys\. retry_after=\d+$/)
    assert.equal((await put('code-host-user', secret('other'), (await signUp(gateway)).token)).status, 200)
  })

  it('provider keys are validated on request, and the answer has the result', async () => {
    const key = secret('asked')
    taken.add(key)
    const validate = () =>
      send(gateway, '/v1/provider-keys/code-host-user/validate', { method: 'POST', token: account.token })
    upstream.play('code-host-user', (_, response) => void response.destroy())
    await put('code-host-user', key)
    assert.equal((await validate()).body.validationFailure?.code, 'UPSTREAM_ERROR')
    playUser()
    const first = await validate()
    assert.equal(first.body.status, 'valid')
    assert.equal(first.body.validationFailure, null)
    assert.ok(Math.abs(Date.parse(first.body.lastValidatedAt) - Date.now()) < 60_000)
    taken.delete(key)
    assert.equal((await validate()).body.status, 'invalid')
  })

  it('provider keys that a worker cannot open are not marked as invalid, because the upstream did not refuse them', async () => {
    const key = secret('unopened')
    taken.add(key)
    await put('code-host-user', key)
    await until(async () => (await statusOf('code-host-user')) === 'valid')
    // As if a node had saved it that has a new ENCRYPTION_KEY already.
    const sealedBy = (id: string) =>
      sql<{ secret_id: string }>(
        gateway,
        'update provider_keys set secret_id = $2 from provider_keys old where old.id = provider_keys.id and old.user_id = $1 returning old.secret_id',
        [account.id, id],
      )
    const [{ secret_id: known } = assert.fail()] = await sealedBy('another')
    const validate = () =>
      send(gateway, '/v1/provider-keys/code-host-user/validate', { method: 'POST', token: account.token })
    assert.equal((await validate()).body.status, 'valid')
    await sealedBy(known)
    taken.delete(key)
    assert.equal((await validate()).body.status, 'invalid')
  })

  it('provider keys are used only by the calls of their owner, not by test keys, team keys or other accounts', async () => {
    const key = secret('owner')
    taken.add(key)
    await put('code-host-user', key)
    const { body } = await send(gateway, '/v1/teams', { token: account.token, body: { name: 'T' } })
    const team = await send(gateway, '/v1/keys', { token: account.token, body: { teamId: body.team.id } })
    const stranger = await signUp(gateway)
    let number = 0
    const sentWith = async (credential: { key?: string; token?: string }) => {
      number += 1
      const path = `/v1/call/code-host-user/profile?username=user${number}`
      assert.equal((await send(gateway, path, credential)).status, 200)
      const arrival = upstream.arrivalsOf('code-host-user').find(({ url }) => url.includes(`user${number}`))
      return arrival?.headers.authorization
    }
    assert.ok((await sentWith({ key: account.live }))?.includes(key))
    assert.ok((await sentWith({ token: account.token }))?.includes(key))
    assert.equal(await sentWith({ key: account.test }), undefined)
    assert.equal(await sentWith({ key: team.body.key }), undefined)
    assert.equal(await sentWith({ key: stranger.live }), undefined)
  })

  it('invented provider keys together use at most a quarter of the cap of an upstream, and leave the rest to other calls', async () => {
    const people = await Promise.all(Array.from({ length: 20 }, () => signUp(gateway, 'pro')))
    const before = upstream.arrivalsOf('code-host-user').length
    const path = (name: string) => `/v1/call/code-host-user/profile?username=${name}`
    const attempts = people.map(async ({ token, live }, index) => {
      assert.equal((await put('code-host-user', secret('made-up'), token)).status, 200)
      return await call(path(`made-up${index}`), live)
    })
    const answers = await Promise.all(attempts)
    for (const { status, body } of answers) assert.ok(status !== 200, JSON.stringify(body))
    const refusals = answers.filter(({ body }) => body.error.code === 'UPSTREAM_CAP_EXHAUSTED')
    assert.ok(refusals.length > 0)
    for (const { body } of refusals) assert.match(body.error.message, /^Your provider key is not verified yet/)
    await endValidations()
    const sent = upstream.arrivalsOf('code-host-user').length - before
    assert.ok(sent > 0 && sent <= 15, `${sent} of 60 an hour`)
    const honest = await signUp(gateway, 'pro')
    assert.equal((await call(path('honest'), honest.live)).status, 200)
  })

  it('provider keys have a cap of their own: the shared one being used up does not hold them up', async () => {
    const others = await signUp(gateway, 'pro')
    const path = (index: number) => `/v1/call/code-host-user/profile?username=cap${index}`
    const key = secret('own-cap')
    taken.add(key)
    await put('code-host-user', key)
    // Until the upstream has accepted it, the key uses the shared cap.
    await until(async () => (await statusOf('code-host-user')) === 'valid')
    const shared = await Promise.all(Array.from({ length: 65 }, (_value, index) => call(path(index), others.live)))
    assert.ok(shared.some(({ body }) => body.error?.code === 'UPSTREAM_CAP_EXHAUSTED'))
    assert.equal((await call(path(1_000))).status, 200)
  })

  it('provider keys that an API needs are named to agents whose calls lack one, and to a team until it has a key of its own', async () => {
    const found = async (key: string) => {
      const { body } = await send(gateway, '/mcp', {
        key,
        body: {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'search_apis', arguments: { limit: 50 } },
        },
      })
      const { apis } = body.result.structuredContent
      return apis.find(({ api }: { api: string }) => api === 'news').status
    }
    const { token } = account
    const made = await send(gateway, '/v1/teams', { method: 'POST', token, body: { name: 'Agents' } })
    const team = await send(gateway, '/v1/keys', { method: 'POST', token, body: { teamId: made.body.team.id } })
    for (const key of [account.live, team.body.key]) assert.equal(await found(key), 'Needs your key')
    await put('news', secret('refused'))
    await until(async () => (await statusOf('news')) === 'invalid')
    assert.equal(await found(account.live), 'Needs your key')
    const good = secret('needed')
    taken.add(good)
    await put('news', good)
    assert.match(await found(account.live), /^(Healthy|Degraded|Down)$/)
    assert.equal((await call(NEWS)).status, 200)
    // If the owner has saved a key, that key does not open the API to the team.
    assert.equal(await found(team.body.key), 'Needs your key')
    const { code, hint } = (await call(NEWS, team.body.key)).body.error
    assert.equal(code, 'PROVIDER_KEY_REQUIRED')
    assert.match(hint, /^Have an owner or admin of the team save one with PUT \/v1\/provider-keys/)
    const ofTeam = secret('of the team'.replaceAll(' ', '-'))
    taken.add(ofTeam)
    const path = `/v1/provider-keys/news?teamId=${made.body.team.id}`
    const saved = await send(gateway, path, { method: 'PUT', token, body: { key: ofTeam } })
    assert.equal(saved.status, 200)
    for (const url of gateway.urls) assert.equal((await call(NEWS, team.body.key, url)).status, 200)
    assert.match(await found(team.body.key), /^(Healthy|Degraded|Down)$/)
    const validated = await send(gateway, path.replace('?', '/validate?'), { method: 'POST', token })
    assert.equal(validated.body.status, 'valid')
    // The owner's own key is another record.
    const listed = await send(gateway, `/v1/provider-keys?teamId=${made.body.team.id}`, { token })
    assert.deepEqual(
      listed.body.providerKeys.map(({ maskedKey }: { maskedKey: string }) => maskedKey.slice(-4)),
      [ofTeam.slice(-4)],
    )
    const [member, stranger] = [await signUp(gateway), await signUp(gateway)]
    await send(gateway, `/v1/teams/${made.body.team.id}/members`, { token, body: { email: member.email } })
    for (const [other, status] of [
      [member, 403],
      [stranger, 404],
    ] as const) {
      for (const [method, body] of [
        ['PUT', { key: ofTeam }],
        ['DELETE', undefined],
      ] as const)
        assert.equal((await send(gateway, path, { method, token: other.token, body })).status, status)
      const list = `/v1/provider-keys?teamId=${made.body.team.id}`
      assert.equal((await send(gateway, list, { token: other.token })).status, status)
    }
    assert.equal((await send(gateway, path, { method: 'DELETE', token })).status, 204)
    for (const url of gateway.urls)
      assert.equal((await call(NEWS, team.body.key, url)).body.error.code, 'PROVIDER_KEY_REQUIRED')
    assert.equal((await call(NEWS)).status, 200, 'the key of the account is left')
  })

  it('when a provider key is deleted, the next call on every node is sent without it', async () => {
    const key = secret('deleted')
    taken.add(key)
    await put('news', key)
    for (const url of gateway.urls) assert.equal((await call(NEWS, account.live, url)).status, 200)
    const remove = () => send(gateway, '/v1/provider-keys/news', { method: 'DELETE', token: account.token })
    assert.equal((await remove()).status, 204)
    for (const url of gateway.urls) {
      assert.equal((await call(NEWS, account.live, url)).body.error.code, 'PROVIDER_KEY_REQUIRED')
    }
    assert.equal((await remove()).body.code, 'KEY_NOT_FOUND')
  })

  it('calls that wait are not sent with a provider key that its owner has deleted or replaced meanwhile', async () => {
    const remove = () => send(gateway, '/v1/provider-keys/news', { method: 'DELETE', token: account.token })
    const replace = async () => {
      const key = secret('new')
      taken.add(key)
      return await put('news', key)
    }
    for (const change of [remove, replace]) {
      const key = secret('waits')
      taken.add(key)
      await put('news', key)
      await until(async () => (await statusOf('news')) === 'valid')
      const answers: (() => void)[] = []
      const uses: string[] = []
      upstream.play('news', ({ url }) => {
        uses.push(url)
        return new Promise((resolve) => answers.push(() => resolve(newsAnswer)))
      })
      const used = () => uses.filter((url) => url.includes(key)).length
      const ask = (number: number) =>
        call(`${NEWS}?max=${1 + (number % 10)}&category=${number < 10 ? 'world' : 'science'}`)
      const first = Array.from({ length: 10 }, (_, number) => ask(number))
      await until(() => used() === 10)
      const waiting = ask(10)
      const owned = 'select cap_scope from provider_keys where user_id = $1'
      const [{ cap_scope: bucket } = assert.fail()] = await sql<{ cap_scope: string }>(gateway, owned, [account.id])
      await until(async () => (await stage.redis.zcard(capKeys.of('news', bucket, 'queue'))) === 1)
      assert.ok((await change()).status < 300)
      playNews()
      for (const answer of answers) answer()
      for (const { status } of await Promise.all(first)) assert.equal(status, 200)
      assert.equal((await waiting).body.error.code, 'PROVIDER_KEY_REQUIRED')
      assert.equal(used(), 10)
    }
  })

  it('provider keys are sealed for their account alone: a row moved to another account opens nothing', async () => {
    const key = secret('sealed')
    taken.add(key)
    const thief = await signUp(gateway, 'pro')
    await put('news', key)
    await put('news', secret('other'), thief.token)
    const rows = await sql<{ sealed: Buffer; masked: string }>(
      gateway,
      'select sealed, masked from provider_keys where user_id = $1',
      [account.id],
    )
    assert.ok(!rows[0]?.sealed.includes(key))
    await sql(
      gateway,
      `update provider_keys t set sealed = o.sealed, secret_id = o.secret_id, status = 'valid'
       from provider_keys o where t.user_id = $1 and o.user_id = $2 and t.slug = o.slug`,
      [thief.id, account.id],
    )
    const before = upstream.arrivalsOf('news').filter(({ url }) => url.includes(key)).length
    await send(gateway, '/v1/provider-keys/news/validate', { method: 'POST', token: thief.token })
    const answer = await call('/v1/call/news/search?q=stolen', thief.live)
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'PROVIDER_KEY_INVALID'], answer.text)
    const since = upstream.arrivalsOf('news').filter(({ url }) => url.includes(key)).length - before
    assert.ok(since <= 1, 'only the validation of its owner may have used it')
  })

  it('provider keys are refused if a header cannot contain them, or if the API does not use keys', async () => {
    for (const bad of ['', 'with blank', 'line\nbreak', 'ünïcode', 'x'.repeat(513), 7, null]) {
      const { status, body } = await put('news', bad)
      assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], String(bad))
    }
    assert.deepEqual((await put('dog-images', 'key')).status, 400)
    assert.deepEqual((await put('no-such-api', 'key')).body.code, 'API_NOT_FOUND')
    const [row] = await sql<{ count: string }>(gateway, 'select count(*) from provider_keys where user_id = $1', [
      account.id,
    ])
    assert.equal(row?.count, '0')
    assert.equal((await put('news', 'short')).body.maskedKey, '********')
  })
})
