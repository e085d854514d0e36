import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { Redis } from 'ioredis'
import pg from 'pg'
import { keys } from '../../src/redis/keys.ts'
import { type Account, type Answer, createKey, send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

/** A call unlike any other, so that the cache never answers it. */
const call = () => `/v1/call/mock-data/posts?id=1&n=${randomUUID()}`
const POST = { id: 1, title: 't', body: 'b', userId: 1 }

describe('usage', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let redis: Redis

  before(async () => {
    upstream = await startUpstreamServer()
    upstream.play('mock-data', () => POST)
    gateway = await startGateway({
      webNodes: 2,
      environment: {
        ...upstream.environment('mock-data'),
        UPSTREAM_MOCK_DATA_CAPS: 'concurrency=50,100000/1',
        PLAN_LIMITS: '{"Free":{"perMinute":1000,"perMonth":500,"inFlight":50},"Pro":{"perMonth":20}}',
      },
    })
    redis = new Redis(gateway.services.redisUrl)
  })
  after(async () => {
    redis.disconnect()
    await gateway.stop()
    await upstream.close()
  })

  const today = () => new Date().toISOString().slice(0, 10)
  const usageOf = async (account: Account, query = '') =>
    (await send(gateway, `/v1/usage${query}`, { token: account.token })).body
  const billingOf = async (account: Account) =>
    (await send(gateway, '/v1/billing/status', { token: account.token })).body
  const callTimes = (count: number, options: { key?: string; token?: string }) =>
    Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const answer = await send(gateway, call(), { ...options, url: gateway.urls[index % gateway.urls.length] ?? '' })
        return answer.status
      }),
    )

  it('usage is listed per day, API, key and status, only for the own account', async () => {
    const account = await signUp(gateway)
    const second = await createKey(gateway, account.token)
    const { body } = await send(gateway, '/v1/keys', { token: account.token })
    const firstId = body.keys.find(({ lastFour }: { lastFour: string }) => account.live.endsWith(lastFour)).id
    await callTimes(3, { key: account.live })
    await callTimes(2, { key: second.key })
    await callTimes(1, { token: account.token })
    await callTimes(4, { key: account.test })
    upstream.play(
      'mock-data',
      (_, response) => void response.writeHead(404, { 'content-type': 'application/json' }).end('{}'),
    )
    assert.deepEqual(await callTimes(1, { key: account.live }), [404])
    upstream.play('mock-data', () => POST)
    await until(async () => (await usageOf(account)).total === 11)
    const { usage } = await usageOf(account, '?groupBy=day,api,key,status,mode')
    const day = today()
    for (const expected of [
      { day, api: 'mock-data', key: firstId, status: 200, mode: 'live', calls: 3 },
      { day, api: 'mock-data', key: firstId, status: 404, mode: 'live', calls: 1 },
      { day, api: 'mock-data', key: second.id, status: 200, mode: 'live', calls: 2 },
      { day, api: 'mock-data', key: 'session', status: 200, mode: 'live', calls: 1 },
    ]) {
      assert.ok(
        usage.some((line: unknown) => isDeepStrictEqual(line, expected)),
        JSON.stringify([expected, usage]),
      )
    }
    assert.equal(usage.length, 5)
    assert.deepEqual((await usageOf(account, '?groupBy=status')).usage, [
      { status: 200, calls: 10 },
      { status: 404, calls: 1 },
    ])
    assert.equal((await usageOf(account, '?from=2020-01-01&to=2020-01-31')).total, 0)
    assert.equal((await usageOf(await signUp(gateway))).total, 0)
  })

  it('usage counts refused calls too, by status, and does not charge them', async () => {
    const account = await signUp(gateway)
    const key = { key: account.live }
    const refusals: [path: string, api: string, status: number][] = [
      ['/v1/call/mock-data/posts?id=0', 'mock-data', 400],
      ['/v1/call/news/top', 'news', 402],
      ['/v1/call/mock-data/nothing', 'mock-data', 404],
      [`/v1/call/${randomUUID()}/posts`, '-', 404],
    ]
    for (const [path, , status] of refusals) assert.equal((await send(gateway, path, key)).status, status)
    assert.deepEqual(await callTimes(1, key), [200])
    const calls = [
      { api: 'mock-data', endpoint: '/posts', parameters: { id: 2 } },
      { api: 'mock-data', endpoint: '/posts', parameters: { id: 0 } },
      { api: 'nothing', endpoint: '/posts' },
    ]
    const batch = await send(gateway, '/v1/batch', { ...key, body: { calls }, headers: { accept: 'application/json' } })
    assert.deepEqual([batch.body.ok, batch.body.failed, batch.body.charged], [1, 2, 1])
    await until(async () => (await usageOf(account)).total === 8)
    const { usage } = await usageOf(account, '?groupBy=api,status,charged')
    const expected = [
      { api: '-', status: 404, charged: false, calls: 2 },
      { api: 'mock-data', status: 200, charged: true, calls: 2 },
      { api: 'mock-data', status: 400, charged: false, calls: 2 },
      { api: 'mock-data', status: 404, charged: false, calls: 1 },
      { api: 'news', status: 402, charged: false, calls: 1 },
    ]
    const inOrder = (lines: typeof expected) =>
      lines.map(({ api, status, charged, calls }) => `${api} ${status} ${charged} ${calls}`).sort()
    assert.deepEqual(inOrder(usage), inOrder(expected))
    assert.equal((await billingOf(account)).usage.used, 2)
  })

  it('usage comes in pages: each row once, and the total of all rows in each', async () => {
    const { id, token } = await signUp(gateway)
    await sql(
      gateway,
      `insert into refusals_daily (day, user_id, key, slug, status, mode, calls)
        select (now() at time zone 'UTC')::date - n % 2, $1, gen_random_uuid(), 'weather', 400 + n % 3, 'live', 2
          from generate_series(1, 2500) n`,
      [id],
    )
    const pagesOf = async (query: string) => {
      const pages: Answer[] = []
      for (let path: string | undefined = `/v1/usage${query}`; path !== undefined; ) {
        const page = await send(gateway, path, { token })
        pages.push(page)
        path = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1]
      }
      return pages
    }
    const pages = await pagesOf('')
    assert.deepEqual(
      pages.map(({ body }) => [body.total, body.usage.length]),
      [1000, 1000, 500].map((rows) => [5000, rows]),
    )
    const rows = pages.flatMap(({ body }) => body.usage)
    assert.equal(new Set(rows.map(({ key }) => key)).size, 2500)
    const [whole, inPages] = [
      await pagesOf('?groupBy=charged,status,mode,day'),
      await pagesOf('?groupBy=charged,status,mode,day&limit=2'),
    ]
    assert.equal(inPages.length, 3)
    assert.deepEqual(
      inPages.flatMap(({ body }) => body.usage),
      whole[0]?.body.usage,
    )
    assert.equal((await usageOf({ token } as Account, '?groupBy=day&cursor=9999-01-01')).total, 5000)
    for (const query of ['limit=0', 'limit=1001', 'cursor=', 'cursor=2026-01-01', "cursor=a~b~c'~d"]) {
      assert.equal((await send(gateway, `/v1/usage?${query}`, { token })).status, 400, query)
    }
  })

  it('usage refuses invalid periods and groups', async () => {
    const { token } = await signUp(gateway)
    for (const query of [
      'from=2026-02-30',
      'from=yesterday',
      'from=2026-02-01&to=2026-01-01',
      'from=2020-01-01&to=2026-01-01',
    ]) {
      const answer = await send(gateway, `/v1/usage?${query}`, { token })
      assert.deepEqual([answer.status, answer.body.code], [400, 'VALIDATION_ERROR'], query)
    }
    const spans = ['from=2025-01-01&to=2026-01-02', 'from=2025-01-02&to=2026-01-02'].map((query) =>
      send(gateway, `/v1/usage?${query}`, { token }),
    )
    const [long = assert.fail(), longest = assert.fail()] = await Promise.all(spans)
    assert.equal(long.body.message, 'Parameter from must be at most 365 days before to.')
    assert.equal(longest.status, 200)
    for (const query of [
      'groupBy=user_id',
      'groupBy=',
      'groupBy=day;api',
      'groupBy=day&groupBy=api',
      'from=0000-01-01&to=0000-01-02',
    ]) {
      assert.equal((await send(gateway, `/v1/usage?${query}`, { token })).status, 400, query)
    }
  })

  it('usage notes when a key was used, without a write for each call', async () => {
    const account = await signUp(gateway)
    await callTimes(5, { key: account.live })
    const lastUsed = async () => {
      const { body } = await send(gateway, '/v1/keys', { token: account.token })
      return body.keys.find(({ environment }: { environment: string }) => environment === 'live').lastUsedAt
    }
    await until(async () => (await lastUsed()) !== null)
    const noted = await lastUsed()
    assert.ok(Math.abs(Date.parse(noted) - Date.now()) < 60_000)
    await callTimes(5, { key: account.live })
    await until(async () => (await usageOf(account)).total === 10)
    assert.equal(await lastUsed(), noted)
  })

  it('usage shows in the billing status, and what ends in 5xx is given back', async () => {
    const account = await signUp(gateway)
    const month = today().slice(0, 7)
    const [year = 0, index = 0] = month.split('-').map(Number)
    const resetsAt = new Date(Date.UTC(year, index)).toISOString()
    const limits = { perMinute: 1000, perMonth: 500, inFlight: 50 }
    const fresh = { tier: 'developer', plan: 'Free', limits, usage: { month, used: 0, remaining: 500, resetsAt } }
    assert.deepEqual(await billingOf(account), fresh)
    await callTimes(4, { key: account.live })
    await callTimes(2, { key: account.test })
    upstream.play('mock-data', (_, response) => void response.writeHead(500).end())
    // If one call and its repeats fail, the breaker stays closed.
    assert.deepEqual(await callTimes(1, { key: account.live }), [502])
    upstream.play('mock-data', () => POST)
    await until(async () => (await billingOf(account)).usage.used === 4)
    assert.deepEqual((await billingOf(account)).usage, { month, used: 4, remaining: 496, resetsAt })
  })

  it('usage of the month is rebuilt from Postgres when Redis is wiped, and the quota holds', async () => {
    const account = await signUp(gateway, 'pro')
    await callTimes(15, { key: account.live })
    assert.equal((await send(gateway, '/v1/call/mock-data/posts?id=0', { key: account.live })).status, 400)
    await until(async () => (await usageOf(account)).total === 16)
    await redis.flushall()
    assert.equal((await billingOf(account)).usage.used, 15)
    const statuses = await callTimes(12, { key: account.live })
    assert.deepEqual(statuses.sort(), [...Array(5).fill(200), ...Array(7).fill(429)])
    const refused = await send(gateway, call(), { key: account.live })
    assert.equal(refused.body.error.code, 'MONTHLY_QUOTA_EXCEEDED')
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
  })

  it('usage survives nodes killed in the middle of writing it, and no batch counts twice', async () => {
    const account = await signUp(gateway)
    const database = new pg.Client({ connectionString: gateway.services.databaseUrl })
    await database.connect()
    await database.query('begin')
    // If a node writes a batch now, it waits for this transaction.
    await database.query('lock table usage_batches in access exclusive mode')
    await callTimes(30, { key: account.live })
    await until(async () => (await redis.scard(keys.usageBatches)) > 0)
    // If a node dies, its unwritten counts die with it: at most the counts of a fifth of a second.
    const inRedis = async (): Promise<number> => {
      const batches = (await redis.smembers(keys.usageBatches)).map((id) => keys.usageBatch(id))
      const hashes = await Promise.all([keys.usagePending, ...batches].map((key) => redis.hgetall(key)))
      const counts = hashes.flatMap((hash) => Object.entries(hash).filter(([field]) => field.includes(account.id)))
      return counts.reduce((sum, [, count]) => sum + Number(count), 0)
    }
    await until(async () => (await inRedis()) === 30)
    const [batch = ''] = await redis.smembers(keys.usageBatches)
    const counts = await redis.hgetall(keys.usageBatch(batch))
    for (const web of gateway.web) {
      const ended = once(web, 'exit')
      web.kill('SIGKILL')
      await ended
    }
    await database.query('rollback')
    await database.end()
    gateway.urls = [await gateway.startWeb()]
    gateway.url = gateway.urls[0] ?? ''
    await until(async () => (await usageOf(account)).total === 30)

    // A node that dies after the commit leaves this state: the batch is still there, and Postgres
    // has counted it already.
    await redis.hset(keys.usageBatch(batch), counts)
    await redis.sadd(keys.usageBatches, batch)
    await callTimes(3, { key: account.live })
    await until(async () => (await redis.scard(keys.usageBatches)) === 0 && (await usageOf(account)).total >= 33)
    assert.equal((await usageOf(account)).total, 33)
    const [row] = await sql<{ count: string }>(gateway, 'select count(*) from usage_batches where id = $1', [batch])
    assert.equal(row?.count, '1')
  })
})
