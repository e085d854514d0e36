/**
 * What happens if an upstream moves the routes that the files of src/upstreams name, as several
 * upstreams have done.
 */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import { createLog } from '../../src/log.ts'
import { closeRedis, openRedis, type RedisConnection } from '../../src/redis/connection.ts'
import { channels, upstreamKeys } from '../../src/redis/keys.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** The answers of a route that has moved. */
const movedAnswers: Record<string, (response: ServerResponse) => void> = {
  '404 without a body': (response) => response.writeHead(404).end(),
  '404 with a page': (response) =>
    response.writeHead(404, { 'content-type': 'text/html' }).end('<html><h1>Not Found</h1></html>'),
  '404 of a JSON router': (response) =>
    response.writeHead(404, JSON_TYPE).end('{"statusCode":404,"error":"Not Found","message":"Cannot GET /x"}'),
  '404 with a short message in JSON': (response) => response.writeHead(404, JSON_TYPE).end('{"message":"Not Found"}'),
  '410 without a body': (response) => response.writeHead(410).end(),
  '301 to another host': (response) => response.writeHead(301, { location: 'https://elsewhere.example/' }).end(),
  '405 in plain text': (response) =>
    response.writeHead(405, { 'content-type': 'text/plain' }).end('Method Not Allowed'),
  '403 in plain text': (response) => response.writeHead(403, { 'content-type': 'text/plain' }).end('Forbidden'),
}

/** For this upstream a 403 is the rate limit. */
const LIMITING_BY_403 = new Set(['geocoding', 'ip-lookup', 'news'])

/** The answers by which each upstream itself says that it has found nothing. */
const notFoundAnswers: [call: string, body: string, type?: string][] = [
  ['countries/info?name=nowhere', '{"error":"Country not found"}'],
  ['countries/code?code=QQ', '{"error":"Country not found"}'],
  ['creature-game/creature?name=nobody', 'Not Found', 'text/plain; charset=utf-8'],
  ['creature-game/ability?name=nothing', 'Not Found', 'text/plain; charset=utf-8'],
  ['crypto-prices/coin?id=no-such-coin', '{"error":"coin not found"}'],
  ['currency/pair?from=USD&to=RUB', '{"message":"not found"}'],
  ['dictionary/define?word=qqqq', '{"title":"No Definitions Found","message":"Sorry pal","resolution":"Try later"}'],
  [
    'dog-images/breed?breed=cat',
    '{"status":"error","message":"Breed not found (main breed does not exist)","code":404}',
  ],
  ['encyclopedia/summary?title=Nothing_of_this_name', '{"status":404,"type":"Internal error"}'],
  [
    'market-quotes/quote?symbol=NOSUCH',
    '{"chart":{"result":null,"error":{"code":"Not Found","description":"No data found, symbol may be delisted"}}}',
  ],
  ['mock-data/posts?id=99', '{}'],
  ['mock-data/users?id=9', '{}'],
  [
    'code-host-user/profile?username=no-such-user',
    '{"message":"Not Found","documentation_url":"https://docs.github.com/rest/users/users#get-a-user","status":"404"}',
  ],
  [
    `public-holidays/holidays?year=${new Date().getUTCFullYear()}&countryCode=QQ`,
    '{"title":"Unknown country code","status":404}',
  ],
  ['public-holidays/next?countryCode=QQ', '{"title":"Unknown country code","status":404}'],
  [
    'space-picture/today?date=2020-02-02',
    '{"code":"apod_basic_not_found","message":"APOD not found.","data":{"status":404}}',
  ],
]

describe('an upstream whose routes have moved', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account
  let redis: RedisConnection
  let upstreams: Map<string, Upstream>
  let consoleUrl: string

  before(async () => {
    upstream = await startUpstreamServer()
    upstreams = await loadUpstreams()
    const caps = [...upstreams.keys()].map((slug) => [
      `UPSTREAM_${slug.toUpperCase().replaceAll('-', '_')}_CAPS`,
      'concurrency=50,10000/1',
    ])
    gateway = await startGateway({
      isInProcess: true,
      environment: {
        ...upstream.environment(...upstreams.keys()),
        ...Object.fromEntries(caps),
        UPSTREAM_NEWS_KEY: 'k',
      },
    })
    account = await signUp(gateway, 'business')
    consoleUrl = await gateway.startConsole()
    redis = openRedis([gateway.services.redisUrl], 'blocking', createLog({ level: 'silent', pretty: false }, 'test'))
  })
  after(async () => {
    await closeRedis(redis)
    await gateway.stop()
    await upstream.close()
  })

  /** A call of the first endpoint, as recorded. */
  const callOf = (slug: string): string => {
    const [[path, { example }] = assert.fail(slug)] = Object.entries(upstreams.get(slug)?.endpoints ?? {})
    const given: Record<string, unknown> = { ...example.parameters }
    if ('year' in given) given.year = new Date().getUTCFullYear()
    const query = Object.entries(given).map(([name, value]): [string, string] => [name, String(value)])
    return `${slug}${path}?${new URLSearchParams(query)}`
  }
  const forgetHealth = async () => {
    await Promise.all([...upstreams.keys()].map((slug) => redis.del(upstreamKeys.health(slug))))
    await Promise.all([...upstreams.keys()].map((slug) => redis.publish(channels.health, slug)))
    await until(async () => (await rows()).every(({ health }) => health?.status === 'Healthy'))
  }
  // biome-ignore lint/suspicious/noExplicitAny: the body of an answer
  const rows = async (): Promise<any[]> => {
    const token = gateway.environment.OPERATOR_TOKEN ?? ''
    return (await send(gateway, '/v1/operator/overview', { url: consoleUrl, token })).body.upstreams
  }

  for (const [what, answer] of Object.entries(movedAnswers)) {
    it(`an upstream whose routes have moved, with ${what}, is 502, kept nowhere, and Degraded or Down with the reason`, async () => {
      await forgetHealth()
      const isLimit = (slug: string) => what.startsWith('403') && LIMITING_BY_403.has(slug)
      for (const slug of upstreams.keys()) {
        upstream.play(slug, (_arrival, response) => answer(response))
        const call = callOf(slug)
        // The call is the same each time, so an answer that was kept would keep it from the source.
        // What the answers mean for other endpoints is a test of interpret.ts.
        const before = upstream.arrivalsOf(slug).length
        const { status, body } = await send(gateway, `/v1/call/${call}`, { key: account.live })
        if (body.error?.code === 'UPSTREAM_RATE_LIMITED' && isLimit(slug)) continue
        assert.equal(status, 502, `${call}: ${JSON.stringify(body)}`)
        if (body.error.code === 'UPSTREAM_ERROR') assert.match(body.error.hint, /^Report it to the operator/, call)
        assert.ok(upstream.arrivalsOf(slug).length > before, `${call} was answered from a store`)
      }
      const expected = [...upstreams.keys()].filter((slug) => !isLimit(slug))
      await until(async () => {
        const troubled = (await rows()).filter(({ health }) => health.status !== 'Healthy').map(({ slug }) => slug)
        return expected.every((slug) => troubled.includes(slug))
      })
      for (const { slug, health } of await rows()) {
        if (!isLimit(slug)) assert.match(health.lastFailure?.words ?? '', new RegExp(`^HTTP ${what.slice(0, 3)}`), slug)
      }
    })
  }

  it('a 404 of an upstream whose routes exist is UPSTREAM_NOT_FOUND, and the upstream stays Healthy', async () => {
    await forgetHealth()
    for (const [call, body, type = 'application/json'] of notFoundAnswers) {
      const [slug = ''] = call.split('/')
      upstream.play(slug, (_arrival, response) => void response.writeHead(404, { 'content-type': type }).end(body))
      const answer = await send(gateway, `/v1/call/${call}`, { key: account.live })
      assert.deepEqual([answer.status, answer.body.error?.code], [404, 'UPSTREAM_NOT_FOUND'], call)
    }
    // Successes are counted some time after their answers.
    const called = [...new Set(notFoundAnswers.map(([call]) => call.split('/')[0] ?? ''))]
    const counted = () => Promise.all(called.map((slug) => redis.exists(upstreamKeys.health(slug))))
    await until(async () => (await counted()).every((count) => count === 1))
    for (const { slug, health } of await rows()) assert.equal(health.status, 'Healthy', slug)
  })

  it('an upstream whose 404 follows an undeclared parameter is 404 as before, kept nowhere, and its health is not touched', async () => {
    await forgetHealth()
    upstream.play('dictionary', (_arrival, response) => void response.writeHead(404).end())
    for (let index = 0; index < 2; index += 1) {
      const before = upstream.arrivalsOf('dictionary').length
      const answer = await send(gateway, '/v1/call/dictionary/define?word=other&x=1', { key: account.live })
      assert.deepEqual([answer.status, answer.body.error?.code], [404, 'UPSTREAM_NOT_FOUND'])
      assert.equal(upstream.arrivalsOf('dictionary').length, before + 1)
    }
    assert.equal(await redis.exists(upstreamKeys.health('dictionary')), 0)
  })
})
