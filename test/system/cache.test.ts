import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { accountKeys, channels, upstreamKeys } from '../../src/redis/keys.ts'
import { ageAnswers, isCapQuiet } from '../support/cap-state.ts'
import { type Account, type Answer, send, signUp } from '../support/client.ts'
import { type Gateway, until } from '../support/gateway.ts'
import { LANE } from '../support/lane.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const SLUGS = ['tech-forum', 'mock-data', 'random-facts', 'ip-lookup', 'crypto-prices', 'currency', 'encyclopedia']

/** A post whose title tells which request it answers. */
function post(id: string | undefined, title: string): object {
  return { id: Number(id), userId: 1, title, body: 'b' }
}

describe('stored answers', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let redis: Redis
  const call = (path: string, options: { key?: string; headers?: Record<string, string>; url?: string } = {}) =>
    send(gateway, `/v1/call${path}`, { key: account.live, ...options })
  const count = (slug: string): number => upstream.arrivalsOf(slug).length

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      webNodes: 2,
      workers: 2,
      caps: {
        ...Object.fromEntries(SLUGS.map((slug) => [slug, undefined])),
        'crypto-prices': 'concurrency=2,1/3600',
        'random-facts': 'concurrency=8,1000/1',
        encyclopedia: 'concurrency=8,1000/1',
      },
      timeoutMs: 30_000,
      environment: { TRUST_PROXY: '127.0.0.1' },
    })
    ;({ gateway, upstream, account, redis } = stage)
  })
  after(() => stage.stop())

  it('stored answers of 1 000 identical cold calls over several nodes come from one upstream request', async () => {
    const { promise: allAreThere, resolve: answer } = Promise.withResolvers<void>()
    upstream.play('mock-data', async () => {
      await allAreThere
      return post('1', 'once')
    })
    const calls: Promise<Answer>[] = []
    while (calls.length < 1_000) {
      for (let index = 0; index < 50; index += 1) {
        calls.push(call('/mock-data/posts?id=1', { url: gateway.urls[index % 2] ?? '' }))
      }
      await until(async () => (await redis.zcard(accountKeys.inFlight(account.id, 'live'))) === calls.length)
    }
    answer()
    for (const { status, body, text } of await Promise.all(calls)) {
      assert.equal(status, 200, text)
      assert.equal(body.data.title, 'once')
    }
    assert.equal(count('mock-data'), 1)
    await until(async () => await isCapQuiet(redis, 'mock-data'))
  })

  it('stored answers tell that they are stored and how old they are', async () => {
    upstream.play('mock-data', () => post('50', 'fresh'))
    const first = await call('/mock-data/posts?id=50')
    assert.equal(first.headers.get('cache-status'), 'agw; fwd=miss; stored')
    assert.equal(first.headers.get('age'), null)
    await ageAnswers(redis, 'mock-data', 100)
    const second = await call('/mock-data/posts?id=50')
    assert.match(second.headers.get('cache-status') ?? '', /^agw; hit; ttl=\d+$/)
    assert.ok(Math.abs(Number(second.headers.get('age')) - 100) <= 2)
    assert.equal(second.text, first.text)
    assert.match(second.headers.get('server-timing') ?? '', /attempts;desc="0"/)
    upstream.play('mock-data', () => post('51', 'too large to be stored '.repeat(30_000)))
    for (let time = 0; time < 2; time += 1) {
      assert.equal((await call('/mock-data/posts?id=51')).headers.get('cache-status'), 'agw; fwd=miss')
    }
    await until(async () => await isCapQuiet(redis, 'mock-data'))
  })

  it('stored answers past their time are served while one call refreshes them', async () => {
    upstream.play('tech-forum', () => [1])
    assert.deepEqual((await call('/tech-forum/topstories')).body.data.story_ids, [1])
    await ageAnswers(redis, 'tech-forum', 90)
    const { promise: staleIsServed, resolve: answer } = Promise.withResolvers<void>()
    upstream.play('tech-forum', async () => {
      await staleIsServed
      return [2]
    })
    const stale = await Promise.all(Array.from({ length: 30 }, () => call('/tech-forum/topstories')))
    answer()
    for (const { body } of stale) assert.deepEqual(body.data.story_ids, [1])
    assert.match(stale[0]?.headers.get('cache-status') ?? '', /^agw; hit; ttl=-\d+; detail=revalidating$/)
    await until(async () => (await call('/tech-forum/topstories')).body.data.story_ids[0] === 2)
    assert.equal(count('tech-forum'), 2)
    await until(async () => await isCapQuiet(redis, 'tech-forum'))
  })

  it('stored answers are served when the upstream fails, as long as that is allowed', async () => {
    upstream.play('currency', () => ({ base: 'EUR', date: '2026-11-20', rates: { USD: 1.1 } }))
    const first = await call('/currency/latest')
    await ageAnswers(redis, 'currency', 3_600 + 700)
    upstream.play('currency', (_arrival, response) => void response.writeHead(503).end())
    const stale = await call('/currency/latest')
    assert.equal(stale.text, first.text)
    assert.match(stale.headers.get('cache-status') ?? '', /^agw; fwd=stale; ttl=-\d+; detail=upstream-failed$/)
    await ageAnswers(redis, 'currency', 86_400)
    assert.equal((await call('/currency/latest')).status, 502)
  })

  it('stored answers in a batch say what they are: fresh, past their time, or none, whatever the upstream did', async () => {
    const cacheOf = async (base: string): Promise<unknown> => {
      const batch = { calls: [{ api: 'currency', endpoint: '/latest', parameters: { base } }] }
      const headers = { accept: 'application/json' }
      const { body } = await send(gateway, '/v1/batch', { key: account.live, body: batch, headers })
      assert.equal(body.results[0].status, 200, JSON.stringify(body))
      return body.results[0].cache
    }
    upstream.play('currency', () => ({ base: 'CHF', date: '2026-11-20', rates: { USD: 1.1 } }))
    // If the test before had failures, they may have opened the breaker.
    await until(async () => (await call('/currency/latest?base=SEK')).status === 200)
    assert.deepEqual([await cacheOf('CHF'), await cacheOf('CHF')], ['miss', 'hit'])
    await ageAnswers(redis, 'currency', 3_600 + 700)
    upstream.play('currency', (_arrival, response) => void response.writeHead(503).end())
    assert.equal(await cacheOf('CHF'), 'stale')
  })

  it('stored answers are kept for what does not exist', async () => {
    upstream.play('mock-data', (_arrival, response) => void response.writeHead(404).end('{}'))
    const before = count('mock-data')
    for (let time = 0; time < 3; time += 1) {
      const answer = await call('/mock-data/posts?id=77')
      assert.equal(answer.status, 404)
      assert.match(
        answer.headers.get('cache-status') ?? '',
        time === 0 ? /^agw; fwd=miss; stored$/ : /^agw; hit; ttl=\d+$/,
      )
      assert.ok(answer.text.includes('UPSTREAM_NOT_FOUND'))
    }
    assert.equal(count('mock-data') - before, 1)
  })

  it('answers of failures and of random endpoints are never stored', async () => {
    upstream.play('mock-data', (_arrival, response) => void response.writeHead(400).end('{}'))
    const before = count('mock-data')
    for (let time = 0; time < 2; time += 1) assert.equal((await call('/mock-data/posts?id=78')).status, 502)
    assert.equal(count('mock-data') - before, 2)
    let facts = 0
    upstream.play('random-facts', () => ({ id: String(++facts), text: 't', source: 's', source_url: 'u' }))
    const answers = await Promise.all(Array.from({ length: 20 }, () => call('/random-facts/random')))
    assert.equal(new Set(answers.map(({ body }) => body.data.id)).size, 20)
    assert.equal(answers[0]?.headers.get('cache-status'), null)
  })

  it('stored answers of ip-lookup are never shared with another caller', async () => {
    upstream.play('ip-lookup', () => ({ status: 'success', query: '9.9.9.9', isp: 'i', lat: 1, lon: 2, city: 'c' }))
    const other = await signUp(gateway)
    for (const key of [account.live, account.live, other.live]) {
      assert.equal((await call('/ip-lookup/lookup?ip=9.9.9.9', { key })).status, 200)
    }
    assert.equal(count('ip-lookup'), 2)
    // The answer depends on whose address it is, not only on who calls.
    const headers = (address: string) => ({ headers: { 'x-forwarded-for': address } })
    for (const address of ['8.8.8.8', '8.8.4.4']) await call('/ip-lookup/lookup', headers(address))
    assert.deepEqual(
      upstream
        .arrivalsOf('ip-lookup')
        .slice(2)
        .map(({ url }) => url.split('?')[0]),
      ['/json/8.8.8.8', '/json/8.8.4.4'],
    )
  })

  it('stored answers are separate for raw and mapped answers and for undeclared parameters, but not for the order of parameters', async () => {
    upstream.play('mock-data', () => ({ ...post('60', 't'), unmapped: true }))
    const before = count('mock-data')
    const raw = { headers: { 'x-gateway-response': 'raw' } }
    const answers: Answer[] = []
    for (const [path, options] of [
      ['/mock-data/posts?id=60', {}],
      ['/mock-data/posts?id=60', raw],
      ['/mock-data/posts?id=60&x=1', {}],
      ['/mock-data/posts?x=1&id=60', {}],
      ['/mock-data/posts?id=60', raw],
    ] as const) {
      answers.push(await call(path, options))
    }
    assert.equal(count('mock-data') - before, 3)
    assert.equal(answers[0]?.body.data.unmapped, undefined)
    for (const at of [1, 4]) assert.equal(answers[at]?.body.unmapped, true)
  })

  it('stored answers are shared by calls that name a parameter by itself and by an alias', async () => {
    upstream.play('encyclopedia', () => ({ type: 'standard', title: 'Earth', extract: 'A planet.' }))
    const first = await call('/encyclopedia/summary?title=Earth')
    assert.equal(first.headers.get('cache-status'), 'agw; fwd=miss; stored', first.text)
    for (const alias of ['q', 'query']) {
      const again = await call(`/encyclopedia/summary?${alias}=Earth`)
      assert.match(again.headers.get('cache-status') ?? '', /^agw; hit/, alias)
      assert.equal(again.text, first.text)
    }
  })

  it('stored answers serve calls when the cap is used up', async () => {
    upstream.play('crypto-prices', () => ({ bitcoin: { usd: 5 } }))
    const path = '/crypto-prices/price?ids=bitcoin'
    const first = await call(path)
    assert.equal(first.status, 200, first.text)
    const refused = await call('/crypto-prices/price?ids=ethereum')
    assert.equal(refused.status, 503, refused.text)
    const hit = await call(path)
    assert.equal(hit.text, first.text)
    assert.match(hit.headers.get('cache-status') ?? '', /^agw; hit; ttl=\d+$/)
    await ageAnswers(redis, 'crypto-prices', 600)
    const stale = await call(path)
    assert.equal(stale.text, first.text)
    assert.match(stale.headers.get('cache-status') ?? '', /detail=cap-exhausted$/)
    assert.equal(count('crypto-prices'), 1)
  })

  it('stored answers serve calls while the breaker is open, and what has none is refused', async () => {
    const path = '/crypto-prices/price?ids=bitcoin'
    // As the script that opens a breaker writes it, with fractions of a millisecond.
    await redis.hset(upstreamKeys.health('crypto-prices'), { open: '1', trialAt: `${Date.now() + 60_000}.125` })
    await redis.publish(channels.health, 'crypto-prices')
    await until(async () => (await call('/crypto-prices/price?ids=solana')).text.includes('UPSTREAM_UNAVAILABLE'))
    const stored = await call(path)
    assert.equal(stored.status, 200, stored.text)
    assert.match(stored.headers.get('cache-status') ?? '', /^agw; hit; .*detail=upstream-down$/)
  })

  it('stored answers that are gone although their node knows of them cost a request within the cap, or a refusal with its wait', async () => {
    const forget = async (slug: string) => await redis.del(await redis.keys(upstreamKeys.cacheEntry(slug, '*')))
    upstream.play('mock-data', ({ url }) => post(url.split('/')[2], 'again'))
    await call('/mock-data/posts?id=80')
    const before = count('mock-data')
    await forget('mock-data')
    assert.equal((await call('/mock-data/posts?id=80')).body.data.title, 'again')
    assert.equal(count('mock-data') - before, 1)
    // Its cap of one an hour is used up, and no stored answer could serve instead.
    await redis.del(upstreamKeys.health('crypto-prices'))
    await redis.publish(channels.health, 'crypto-prices')
    await until(async () => (await call('/crypto-prices/price?ids=solana')).text.includes('UPSTREAM_CAP_EXHAUSTED'))
    await forget('crypto-prices')
    const refused = await call('/crypto-prices/price?ids=bitcoin')
    assert.equal(refused.body.error.code, 'UPSTREAM_CAP_EXHAUSTED', refused.text)
    assert.ok(Number(refused.headers.get('retry-after')) > 3_000)
    assert.equal(count('crypto-prices'), 1)
    await until(async () => await isCapQuiet(redis, 'crypto-prices'))
  })

  it('stored answers that share a request are given to the callers that stay when the first caller leaves', async () => {
    const pending: ServerResponse[] = []
    upstream.play('mock-data', (_arrival, response) => void pending.push(response))
    const before = count('mock-data')
    const inFlight = async () => await redis.zcard(accountKeys.inFlight(account.id, 'live'))
    await until(async () => (await inFlight()) === 0)
    const leaving = new AbortController()
    const path = '/v1/call/mock-data/posts?id=90'
    const gone = send(gateway, path, { key: account.live, signal: leaving.signal }).catch(() => 'gone')
    await until(() => count('mock-data') === before + 1)
    const queue = new Queue(LANE.name, { connection: redis, prefix: LANE.prefix })
    const isNoneQueued = async () => (await queue.getJobCountByTypes('waiting')) === 0
    const staying: Promise<Answer>[] = []
    // One at a time, each as a job of its own. Some run in the leader's worker, some in the other
    // worker.
    while (staying.length < 6) {
      staying.push(call('/mock-data/posts?id=90'))
      await until(async () => (await inFlight()) === 1 + staying.length && (await isNoneQueued()))
    }
    await queue.close()
    assert.equal((await redis.keys('agw:{mock-data}:leader:*')).length, 1)
    leaving.abort()
    assert.equal(await gone, 'gone')
    // The worker noticed it, and the call has ended.
    await until(async () => (await inFlight()) <= staying.length)
    assert.equal(await inFlight(), staying.length)
    // If a follower is in the other process, it sends a request of its own.
    upstream.play('mock-data', () => post('90', 'kept'))
    for (const response of pending) response.end(JSON.stringify(post('90', 'kept')))
    for (const { status, body, text } of await Promise.all(staying)) {
      assert.equal(status, 200, text)
      assert.equal(body.data.title, 'kept')
    }
    assert.ok(count('mock-data') - before <= 2, `${count('mock-data') - before} requests`)
    await until(async () => await isCapQuiet(redis, 'mock-data'))
  })

  it('stored answers take bounded room', async () => {
    const extract = 'x'.repeat(200_000)
    upstream.play('encyclopedia', ({ url }) => ({ type: 'standard', title: url, extract }))
    for (let round = 0; round < 10; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, index) => call(`/encyclopedia/summary?title=t${round}x${index}`)),
      )
      for (const { status, text } of answers) assert.equal(status, 200, text.slice(0, 200))
    }
    const keys = await redis.keys('agw:{encyclopedia}:cache:*')
    const sizes = await Promise.all(keys.map((key) => redis.strlen(key)))
    const total = sizes.reduce((sum, size) => sum + size, 0)
    assert.ok(total <= 16 * 1024 * 1024, `${total} bytes in ${keys.length} answers`)
    assert.ok(total > 10 * 1024 * 1024, `${total} bytes in ${keys.length} answers`)
    // The youngest answers are there.
    assert.match((await call('/encyclopedia/summary?title=t9x11')).headers.get('cache-status') ?? '', /^agw; hit/)
  })
})
