import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { accountKeys } from '../../src/redis/keys.ts'
import { openOperatorRedis } from '../support/cap-state.ts'
import { type Account, send, signUp } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import { type Stage, startStage } from '../support/stage.ts'
import type { UpstreamServer } from '../support/upstream-server.ts'

const SIX = ['weather', 'code-host-user', 'mock-data', 'currency', 'tech-forum', 'ip-lookup']

describe('a call', () => {
  let stage: Stage
  let gateway: Gateway
  let upstream: UpstreamServer
  let account: Account

  before(async () => {
    stage = await startStage({
      isInProcess: true,
      caps: Object.fromEntries(SIX.map((slug) => [slug, undefined])),
      environment: { PLAN_LIMITS: '{"Free":{"perMinute":1000}}' },
    })
    ;({ gateway, upstream, account } = stage)
  })
  after(() => stage.stop())

  it('a call is private, says what its form depends on, and is refused with its id and times', async () => {
    const call = (path: string, headers: Record<string, string> = {}) =>
      send(gateway, `/v1/call/mock-data/posts?${path}`, { key: account.test, headers })
    const mapped = await call('id=1')
    const raw = await call('id=1', { 'x-gateway-response': 'raw' })
    assert.equal(mapped.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(raw.headers.get('content-type'), 'application/vnd.upstream+json')
    for (const { headers } of [mapped, raw]) {
      assert.equal(headers.get('cache-control'), 'private, no-store')
      assert.match(headers.get('vary') ?? '', /accept.*x-gateway-response/)
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
    }
    const misspelled = await call('id=1', { 'x-gateway-mode': 'tset' })
    assert.deepEqual([misspelled.status, misspelled.body.error.code], [400, 'INVALID_PARAMETER'])
    assert.equal(misspelled.body.error.message, 'X-Gateway-Mode must be test or live.')
    assert.equal((await call('id=1', { 'x-gateway-mode': 'live' })).status, 200)
    const refused = await call('id=0')
    assert.equal(refused.body.error.code, 'INVALID_PARAMETER')
    assert.match(refused.headers.get('x-call-id') ?? '', /^call_[0-9a-f]{32}$/)
    assert.match(
      refused.headers.get('server-timing') ?? '',
      /^admission;dur=[\d.]+, queue;dur=0\.0, upstream;dur=0\.0$/,
    )
    assert.ok(refused.headers.get('ratelimit'))
    const misspelt = await call('id=1', { 'x-gateway-response': 'RAW' })
    assert.deepEqual([misspelt.status, misspelt.body.error.code], [400, 'INVALID_PARAMETER'])
  })

  it('a mode that does not exist is refused on every route that a key opens, because it would count as live', async () => {
    const headers = { 'x-gateway-mode': 'tset', accept: 'application/json, text/event-stream' }
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    const calls = [{ api: 'mock-data', endpoint: '/posts', parameters: { id: 1 } }]
    for (const [path, body] of [
      [`/v1/calls/call_${'0'.repeat(32)}`],
      ['/v1/catalog/mock-data'],
      ['/v1/batch', { calls }],
      ['/mcp', ping],
    ] as const) {
      const answer = await send(gateway, path, { key: account.live, headers, body })
      assert.deepEqual([path, answer.status, answer.body.code], [path, 400, 'INVALID_PARAMETER'])
    }
  })

  it('a call whose large answer has no room, because a node died with other answers of its account, gets a refusal with a Retry-After', async (t) => {
    const redis = openOperatorRedis(gateway)
    t.after(() => redis.disconnect())
    const page = 'x'.repeat(80_000)
    upstream.play('currency', () => ({ base: 'EUR', date: '2026-01-02', rates: { USD: 1.1 }, page }))
    const call = (number: number) =>
      send(gateway, `/v1/call/currency/latest?nonce=${number}`, {
        key: account.live,
        headers: { 'x-gateway-response': 'raw' },
      })
    assert.equal((await call(1)).status, 200)
    const bodies = accountKeys.bodies(account.id)
    await redis.zadd(bodies, Date.now() + 50_000, `${16 * 1024 * 1024} call_of_a_dead_node`)
    const refused = await call(2)
    assert.deepEqual([refused.status, refused.body.error.code], [503, 'OVERLOADED'])
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(seconds > 10 && seconds <= 50, `retry after ${seconds}`)
    await redis.del(bodies)
    assert.equal((await call(2)).status, 200)
  })

  it('a call to an API that is not enabled is refused for invalid parameters first, and otherwise with API_NOT_ENABLED and a Retry-After', async () => {
    const pro = await signUp(gateway, 'pro')
    const codes = []
    for (const query of ['max=99', 'max=5']) {
      const { body, headers } = await send(gateway, `/v1/call/news/top?${query}`, { key: pro.live })
      codes.push([body.error.code, headers.get('retry-after')])
    }
    assert.deepEqual(codes, [
      ['INVALID_PARAMETER', null],
      ['API_NOT_ENABLED', '3600'],
    ])
  })

  it('the refusal of a call with a misspelled name suggests the nearest name, and none if no name is near', async () => {
    const messageOf = async (path: string) => {
      const { body } = await send(gateway, `/v1/call/${path}`, { key: account.test })
      assert.equal(body.status, 'error')
      return body.error.message
    }
    const messages = {
      'wether/current': 'There is no API with this name; did you mean weather?',
      'Weather/current': 'There is no API with this name; did you mean weather?',
      'nothing/x': 'There is no API with this name.',
      'weather/curent': 'The API weather has no such endpoint; did you mean /current?',
      'geocoding/serch': 'The API geocoding has no such endpoint; did you mean /search? It has /search, /reverse.',
      'geocoding/x': 'The API geocoding has no such endpoint; it has /search, /reverse.',
      'geocoding/a/b': 'The API geocoding has no such endpoint; it has /search, /reverse.',
      'weather/current?latitud=1&longitude=2':
        'Parameter latitude is invalid: it is required and must be a number from -90 to 90; it may also be given as lat; latitud is not known; did you mean latitude?',
      'weather/current?zoom=1&longitude=2':
        'Parameter latitude is invalid: it is required and must be a number from -90 to 90; it may also be given as lat.',
    }
    for (const [path, message] of Object.entries(messages)) assert.equal(await messageOf(path), message, path)
    const { body } = await send(gateway, '/v1/catalog/wether')
    assert.equal(body.message, 'There is no API with this name; did you mean weather?')
  })

  for (const slug of SIX) {
    it(`a call to ${slug} answers each endpoint's recorded response as its documented data`, async () => {
      const { endpoints } = (await loadUpstreams()).get(slug) ?? assert.fail(`no upstream ${slug}`)
      for (const [path, { example }] of Object.entries(endpoints)) {
        upstream.play(slug, () => example.response)
        const query = new URLSearchParams(
          Object.entries(example.parameters).map(([name, value]): [string, string] => [name, String(value)]),
        )
        const answer = await send(gateway, `/v1/call/${slug}${path}?${query}`, { key: account.live })
        assert.equal(answer.status, 200, answer.text)
        assert.deepEqual(answer.body, { status: 'success', data: example.data })
      }
    })
  }
})
