import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { Redis } from 'ioredis'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import { ERRORS, type ErrorCode } from '../../src/errors.ts'
import { channels, upstreamKeys } from '../../src/redis/keys.ts'
import { type Account, type Answer, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { type Play, startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

/** Played by the loopback server; `public-holidays` has an address where nobody listens. */
const PLAYED = ['currency', 'timezone', 'weather', 'encyclopedia', 'geocoding', 'dictionary']

const JSON_HEADERS = { 'content-type': 'application/json' }
const RATES = { amount: 1, base: 'EUR', date: '2026-01-02', rates: { USD: 1.1 } }
const GOOD = JSON.stringify(RATES)
/** Much more than an answer may have, and a few kilobytes when it is compressed. */
const BOMB = Buffer.alloc(50_000_000, ' ')

let gateway: Gateway
let upstream: UpstreamServer
/** Addresses to which no redirect may lead. */
let canary: UpstreamServer
let account: Account
let redis: Redis
let upstreams: Map<string, Upstream>
/**
 * Calls to an upstream that is silent or drips; they take three attempts of 4 s and 5 s, so they
 * begin with the file.
 */
let slow: Promise<Answer[]>

before(async () => {
  ;[upstream, canary] = await Promise.all([startUpstreamServer(), startUpstreamServer()])
  upstreams = await loadUpstreams()
  const caps = PLAYED.map((slug) => [
    `UPSTREAM_${slug.toUpperCase().replaceAll('-', '_')}_CAPS`,
    'concurrency=50,10000/1',
  ])
  gateway = await startGateway({
    isInProcess: true,
    environment: {
      ...upstream.environment(...PLAYED),
      ...Object.fromEntries(caps),
      UPSTREAM_PUBLIC_HOLIDAYS_URL: 'http://127.0.0.1:1',
      PLAN_LIMITS: '{"Free":{"perMinute":100000,"inFlight":1000,"perMonth":1000000}}',
    },
  })
  redis = new Redis(gateway.services.redisUrl)
  account = await signUp(gateway)
  upstream.play('timezone', () => undefined)
  upstream.play('dictionary', (_arrival, response) => {
    response.writeHead(200, JSON_HEADERS)
    const drip = setInterval(() => response.write(' '), 200)
    response.on('close', () => clearInterval(drip))
  })
  slow = Promise.all([callTo('timezone'), callTo('dictionary')])
  // Only its test uses it. If other tests run alone, the run ends before it does.
  slow.catch(() => undefined)
})
after(async () => {
  redis.disconnect()
  await gateway.stop()
  await Promise.all([upstream.close(), canary.close()])
})

/**
 * One call of an upstream's first endpoint with its recorded parameters, never answered from the
 * cache.
 */
function callTo(slug: string, headers: Record<string, string> = {}): Promise<Answer> {
  const [path, endpoint] = Object.entries(upstreams.get(slug)?.endpoints ?? {})[0] ?? assert.fail(slug)
  const query = new URLSearchParams(
    Object.entries(endpoint.example.parameters).map(([name, value]): [string, string] => [name, String(value)]),
  )
  query.set('nonce', randomUUID())
  return send(gateway, `/v1/call/${slug}${path}?${query}`, { key: account.live, headers })
}

/** Makes an upstream's breaker forget its failures, so that each fault finds a healthy upstream. */
async function heal(slug: string): Promise<void> {
  await redis.del(upstreamKeys.health(slug))
  await redis.publish(channels.health, slug)
}

async function checkNormal(slug: string): Promise<void> {
  const [, endpoint] = Object.entries(upstreams.get(slug)?.endpoints ?? {})[0] ?? assert.fail(slug)
  upstream.play(slug, () => endpoint.example.response)
  const answer = await callTo(slug)
  assert.equal(answer.status, 200, `the call after: ${answer.text}`)
  assert.deepEqual(answer.body, { status: 'success', data: endpoint.example.data })
}

/** @param why what the message says besides the sentence of the code */
function checkFailure(answer: Answer, code: ErrorCode, why = answer.body.error?.message): void {
  assert.equal(answer.status, ERRORS[code].status, answer.text)
  assert.deepEqual(Object.keys(answer.body).sort(), ['error', 'status'])
  assert.equal(answer.body.status, 'error')
  assert.deepEqual(Object.keys(answer.body.error).sort(), ['code', 'docs', 'hint', 'message'])
  for (const value of Object.values(answer.body.error)) assert.ok(typeof value === 'string' && value !== '')
  assert.equal(answer.body.error.code, code)
  assert.ok(answer.body.error.message.includes(why), answer.text)
  assert.match(answer.headers.get('x-request-id') ?? '', /^req_/)
  assert.match(answer.headers.get('x-call-id') ?? '', /^call_/)
  for (const leak of ['127.0.0.1', 'ECONN', 'UND_ERR', '.ts:', 'SECRET'])
    assert.ok(!answer.text.includes(leak), answer.text)
}

/** Writes bytes below HTTP, then what `then` does with the socket. */
const bytes =
  (text: string, then: (socket: Socket) => void = (socket) => socket.destroy()): Play =>
  (_arrival, response) => {
    const { socket } = response
    socket?.write(text, () => then(socket))
  }

const withBody =
  (body: string | Buffer, headers: Record<string, string> = JSON_HEADERS, status = 200): Play =>
  (_arrival, response) =>
    void response.writeHead(status, headers).end(body)

const withStatus = (status: number, headers: Record<string, string> = {}, body = '{"SECRET":1}'): Play =>
  withBody(status === 204 || status === 304 ? '' : body, { ...JSON_HEADERS, ...headers }, status)

/** Writes until the other side has had enough. */
function endless(response: ServerResponse): void {
  response.writeHead(200, JSON_HEADERS)
  const chunk = Buffer.alloc(64 * 1024, ' ')
  const write = (): void => {
    if (!response.destroyed) response.write(chunk, (error) => (error ? undefined : setImmediate(write)))
  }
  write()
}

const half = GOOD.slice(0, GOOD.length / 2)
const head = (more: string) => `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${more}\r\n\r\n`

const FAULTS: [string, Play, ErrorCode, string?][] = [
  [
    'resets the connection',
    (_arrival, response) => void response.socket?.resetAndDestroy(),
    'UPSTREAM_ERROR',
    'failed (connection reset).',
  ],
  ['closes without an answer', (_arrival, response) => void response.socket?.destroy(), 'UPSTREAM_ERROR'],
  ['speaks no HTTP', bytes('220 smtp ready\r\n'), 'UPSTREAM_ERROR', 'failed (answer is not valid HTTP).'],
  [
    'sends more headers than are read',
    bytes(head(`X: ${'x'.repeat(40_000)}`)),
    'UPSTREAM_ERROR',
    'failed (headers of the answer too large).',
  ],
  [
    'breaks its chunks',
    bytes(`${head('Transfer-Encoding: chunked')}zz\r\n${half}`),
    'UPSTREAM_ERROR',
    'failed (answer is not valid HTTP).',
  ],
  ['sends half a body of a stated length', bytes(head(`Content-Length: ${GOOD.length}`) + half), 'UPSTREAM_ERROR'],
  [
    'resets in the middle of a body',
    bytes(head(`Content-Length: ${GOOD.length}`) + half, (socket) => socket.resetAndDestroy()),
    'UPSTREAM_ERROR',
  ],
  ['ends in the middle of chunks', bytes(`${head('Transfer-Encoding: chunked')}40\r\n${half}`), 'UPSTREAM_ERROR'],
  ['states too short a length', bytes(head(`Content-Length: ${half.length}`) + GOOD), 'UPSTREAM_INVALID_RESPONSE'],
  [
    'states two lengths',
    bytes(head(`Content-Length: 5\r\nContent-Length: ${GOOD.length}`) + GOOD),
    'UPSTREAM_ERROR',
    '(answer',
  ],
  [
    'sends HTML',
    withBody('<html><script>SECRET</script></html>', { 'content-type': 'text/html' }),
    'UPSTREAM_INVALID_RESPONSE',
  ],
  ['sends nothing', withBody(''), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends half a body as a whole one', withBody(half), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends NaN', withBody('{"base":NaN}'), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends JSON with NUL', withBody(`${GOOD}\0`), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends latin-1', withBody(Buffer.from('{"base":"\u00e9"}', 'latin1')), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends UTF-16', withBody(Buffer.from(GOOD, 'utf16le')), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends JSON null', withBody('null'), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends a JSON number', withBody('7'), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends a JSON list', withBody(`[${GOOD}]`), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends an empty object', withBody('{}'), 'UPSTREAM_INVALID_RESPONSE'],
  ['sends wrong types', withBody('{"base":{},"date":[],"rates":"many"}'), 'UPSTREAM_INVALID_RESPONSE'],
  [
    'names an encoding it did not use',
    withBody(GOOD, { ...JSON_HEADERS, 'content-encoding': 'gzip' }),
    'UPSTREAM_INVALID_RESPONSE',
  ],
  [
    'uses an encoding nobody asked for',
    withBody(GOOD, { ...JSON_HEADERS, 'content-encoding': 'zstd' }),
    'UPSTREAM_INVALID_RESPONSE',
  ],
  [
    'nests more encodings than are undone',
    withBody(gzipSync(GOOD), { ...JSON_HEADERS, 'content-encoding': 'gzip, gzip, gzip, gzip, gzip' }),
    'UPSTREAM_INVALID_RESPONSE',
  ],
  [
    'cuts a compressed body',
    withBody(gzipSync(GOOD).subarray(0, 30), { ...JSON_HEADERS, 'content-encoding': 'gzip' }),
    'UPSTREAM_INVALID_RESPONSE',
  ],
  [
    'sends a gzip bomb',
    withBody(gzipSync(BOMB, { level: 1 }), { ...JSON_HEADERS, 'content-encoding': 'gzip' }),
    'UPSTREAM_TOO_LARGE',
  ],
  [
    'sends a brotli bomb',
    withBody(brotliCompressSync(BOMB, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }), {
      ...JSON_HEADERS,
      'content-encoding': 'br',
    }),
    'UPSTREAM_TOO_LARGE',
  ],
  ['sends 50 MB', withBody(`{"x":"${'x'.repeat(50_000_000)}"}`), 'UPSTREAM_TOO_LARGE'],
  ['sends without end', (_arrival, response) => endless(response), 'UPSTREAM_TOO_LARGE'],
  ['answers 204', withStatus(204), 'UPSTREAM_INVALID_RESPONSE'],
  ['answers 205', withStatus(205), 'UPSTREAM_INVALID_RESPONSE'],
  ['answers 206', withStatus(206, {}, GOOD), 'UPSTREAM_INVALID_RESPONSE'],
  ['answers 304', withStatus(304), 'UPSTREAM_INVALID_RESPONSE'],
  ['answers 302 without saying where', withStatus(302), 'UPSTREAM_INVALID_RESPONSE'],
  ['answers 400', withStatus(400), 'UPSTREAM_REJECTED', 'rejected these values.'],
  ['answers 422', withStatus(422), 'UPSTREAM_REJECTED', 'rejected these values (HTTP 422).'],
  ['answers 404', withStatus(404), 'UPSTREAM_NOT_FOUND', 'Not found at the source.'],
  ['answers 410', withStatus(410), 'UPSTREAM_NOT_FOUND'],
  ['answers 401', withStatus(401, { 'www-authenticate': 'Basic SECRET' }), 'UPSTREAM_AUTH_FAILED'],
  ['answers 403', withStatus(403), 'UPSTREAM_AUTH_FAILED', 'refused the gateway (HTTP 403).'],
  ['answers 500', withStatus(500, {}, 'stack SECRET'), 'UPSTREAM_ERROR', 'failed (HTTP 500).'],
  ['answers 503', withStatus(503), 'UPSTREAM_ERROR'],
  ['answers 599', withStatus(599), 'UPSTREAM_ERROR'],
  ['answers 418', withStatus(418), 'UPSTREAM_REJECTED'],
  ['answers 431', withStatus(431), 'UPSTREAM_REJECTED'],
]

describe('a call whose upstream', () => {
  for (const [what, play, code, why] of FAULTS) {
    it(`a call whose upstream ${what} is ${ERRORS[code].status} ${code}, and the next is answered`, async () => {
      await heal('currency')
      await checkNormal('currency')
      upstream.play('currency', play)
      checkFailure(await callTo('currency'), code, why)
      await checkNormal('currency')
    })
  }

  it('a call whose upstream is not there is UPSTREAM_ERROR', async () =>
    checkFailure(await callTo('public-holidays'), 'UPSTREAM_ERROR', 'failed (connection refused).'))

  it('a call whose upstream is silent, or sends single bytes, ends with UPSTREAM_TIMEOUT when the time of its attempts is over', async () => {
    for (const answer of await slow) checkFailure(answer, 'UPSTREAM_TIMEOUT')
    const [, { example }] = Object.entries(upstreams.get('timezone')?.endpoints ?? {})[0] ?? assert.fail()
    upstream.play('timezone', () => example.response)
    await heal('timezone')
    await until(async () => (await callTo('timezone')).status === 200)
  })

  for (const [what, status] of [
    ['answers 429', 429],
    ['answers 403 with a time to wait', 403],
  ] as const) {
    it(`a call whose upstream ${what} is UPSTREAM_RATE_LIMITED with that time, and the upstream gets no request until the time is over`, async () => {
      // Calls with undeclared parameters follow another rule.
      const call = (latitude: number) =>
        send(gateway, `/v1/call/weather/current?latitude=${latitude}&longitude=${status}e-1`, { key: account.live })
      upstream.play('weather', withStatus(status, { 'retry-after': '2' }))
      const answer = await call(1)
      checkFailure(answer, 'UPSTREAM_RATE_LIMITED')
      assert.ok(Number(answer.headers.get('retry-after')) >= 1)
      const asked = upstream.arrivalsOf('weather').length
      const startedAt = performance.now()
      const { example } = upstreams.get('weather')?.endpoints['/current'] ?? assert.fail()
      upstream.play('weather', () => example.response)
      assert.equal((await call(2)).status, 200)
      assert.ok(performance.now() - startedAt > 1_000, 'it was asked before its time')
      assert.equal(upstream.arrivalsOf('weather').length, asked + 1)
    })
  }
})

describe('a redirect', () => {
  const places: [string, () => string][] = [
    ['to loopback', () => `http://127.0.0.1:${canary.port}/x`],
    ['to another host', () => `http://localhost:${canary.port}/x`],
    ['to the metadata address', () => 'http://169.254.169.254/latest/meta-data/'],
    ['to a file', () => 'file:///etc/passwd'],
    ['to the same origin', () => '/currency/elsewhere'],
    ['to nowhere', () => 'http://'],
  ]
  for (const [where, location] of places) {
    it(`a redirect ${where} is not followed: UPSTREAM_REDIRECT_BLOCKED`, async () => {
      const before = upstream.arrivals.length
      for (const status of [301, 302, 303, 307, 308]) {
        upstream.play('currency', withStatus(status, { location: location() }))
        checkFailure(await callTo('currency'), 'UPSTREAM_REDIRECT_BLOCKED')
      }
      assert.equal(upstream.arrivals.length, before + 5)
      assert.equal(canary.arrivals.length, 0)
      await checkNormal('currency')
    })
  }

  it('a redirect is followed under its own base address where the upstream’s file allows, and nowhere else', async () => {
    const { response } = Object.values(upstreams.get('encyclopedia')?.endpoints ?? {})[0]?.example ?? assert.fail()
    upstream.play('encyclopedia', ({ url }, answer) =>
      url === '/target' ? response : void answer.writeHead(302, { location: '/encyclopedia/target' }).end(),
    )
    assert.equal((await callTo('encyclopedia')).status, 200)
    for (const location of [
      `http://127.0.0.1:${canary.port}/x`,
      '/currency/x',
      '/encyclopedia/../currency/x',
      '//localhost/x',
    ]) {
      upstream.play('encyclopedia', withStatus(302, { location }))
      const before = upstream.arrivals.length
      checkFailure(await callTo('encyclopedia'), 'UPSTREAM_REDIRECT_BLOCKED')
      assert.equal(upstream.arrivals.length, before + 1, location)
    }
    upstream.play('encyclopedia', withStatus(302, { location: '/encyclopedia/loop' }))
    const before = upstream.arrivals.length
    checkFailure(await callTo('encyclopedia'), 'UPSTREAM_REDIRECT_BLOCKED')
    assert.equal(upstream.arrivals.length, before + 3, 'a loop ends after two hops')
    assert.equal(canary.arrivals.length, 0)
    await checkNormal('encyclopedia')
  })
})

describe('an odd but usable answer', () => {
  async function dataOf(play: Play, slug = 'currency'): Promise<Answer> {
    upstream.play(slug, play)
    const answer = await callTo(slug)
    assert.equal(answer.status, 200, answer.text)
    return answer
  }

  it('an odd but usable answer is used: a byte order mark, gzip, brotli, early hints, no media type', async () => {
    const plays: Play[] = [
      withBody(`\ufeff${GOOD}`),
      withBody(gzipSync(GOOD), { ...JSON_HEADERS, 'content-encoding': 'GZip' }),
      withBody(brotliCompressSync(GOOD), { ...JSON_HEADERS, 'content-encoding': 'br' }),
      withBody(GOOD, {}),
      bytes(
        `${'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'.repeat(20)}${head(`Content-Length: ${GOOD.length}`)}${GOOD}`,
      ),
      bytes(`${head('Connection: close')}${GOOD}`, (socket) => socket.end()),
    ]
    for (const play of plays) {
      const { body } = await dataOf(play)
      assert.deepEqual(body.data, { base: 'EUR', date: '2026-01-02', rates: { USD: 1.1 } })
    }
  })

  it('an odd but usable answer with 5 000 levels costs nothing if they are left out, and is no failure of ours if they are passed on', async () => {
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
    await dataOf(withBody(`{"deep":${deep},${GOOD.slice(1)}`))
    const place = `{"display_name":"x","lat":"1","lon":"1","address":{"city":"x","deep":${`{"a":`.repeat(20_000)}1${'}'.repeat(20_000)}}}`
    upstream.play('geocoding', withBody(`[${place}]`))
    const answer = await callTo('geocoding')
    if (answer.status !== 200) checkFailure(answer, 'UPSTREAM_INVALID_RESPONSE')
    await checkNormal('geocoding')
  })

  it('an odd but usable answer with names of prototypes changes none', async () => {
    const { text } = await dataOf(
      withBody(`{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},${GOOD.slice(1)}`),
    )
    assert.ok(!text.includes('polluted'))
    const { body } = await dataOf(withBody('{"base":"EUR","date":"2026-01-02","rates":{"__proto__":7,"USD":1.1}}'))
    assert.equal(body.data.rates.USD, 1.1)
    await checkNormal('currency')
  })

  it('an odd but usable answer with lone surrogates leaves as valid UTF-8 JSON', async () => {
    const { text, body } = await dataOf(withBody('{"base":"\\ud800x","date":"2026-01-02","rates":{"\\udc00":1.1}}'))
    assert.ok(text.isWellFormed() && !text.includes('\ufffd'), text)
    assert.equal(body.status, 'success')
  })

  it('an odd but usable answer followed by another on the same connection is not given to the next call', async () => {
    const forged = GOOD.replace('EUR', 'GBP')
    const both = [GOOD, forged].map((body) => `${head(`Content-Length: ${body.length}`)}${body}`).join('')
    const { body } = await dataOf(bytes(both, () => undefined))
    assert.equal(body.data.base, 'EUR')
    await checkNormal('currency')
  })

  it('an odd but usable answer keeps its headers to itself', async () => {
    const foreign = {
      'set-cookie': 'session=SECRET',
      'access-control-allow-origin': 'https://evil.example',
      'content-security-policy': 'default-src SECRET',
      server: 'SECRET',
      'x-powered-by': 'SECRET',
      'x-request-id': 'SECRET',
      'x-ratelimit-limit': '7',
      'cache-control': 'public, max-age=999',
      etag: '"SECRET"',
      location: 'http://evil.example',
      refresh: '0; url=http://evil.example',
      'strict-transport-security': 'max-age=7',
      'retry-after': '77',
      'proxy-authenticate': 'Basic SECRET',
    }
    const { headers } = await dataOf(withBody(GOOD, { ...JSON_HEADERS, ...foreign }))
    for (const [name, value] of Object.entries(foreign)) assert.notEqual(headers.get(name), value, name)
    assert.ok(![...headers].some(([, value]) => value.includes('SECRET') || value.includes('evil')))
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  })
})

describe('the upstream', () => {
  it('the upstream gets only headers of the gateway, whatever headers the caller sends', async () => {
    const sent = {
      authorization: `Bearer ${account.live}`,
      cookie: 'session=CANARY',
      'x-forwarded-for': '198.51.100.7',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
      forwarded: 'for=198.51.100.7',
      'x-real-ip': '198.51.100.7',
      via: '1.1 CANARY',
      range: 'bytes=0-1',
      'if-none-match': '"CANARY"',
      'if-modified-since': 'Sat, 01 Jan 2000 00:00:00 GMT',
      'proxy-authorization': 'Basic CANARY',
      'x-agw-request-id': 'CANARY',
      'x-gateway-response': 'raw',
      'user-agent': 'CANARY',
      accept: 'text/CANARY',
      'accept-encoding': 'zstd',
      'accept-language': 'de-CANARY',
      origin: 'https://evil.example',
      referer: 'https://evil.example',
      'x-anything': 'CANARY',
      te: 'trailers',
    }
    await checkNormal('currency')
    upstream.play('currency', withBody(GOOD))
    assert.equal((await callTo('currency', sent)).status, 200)
    const { headers } = upstream.arrivalsOf('currency').at(-1) ?? assert.fail()
    assert.deepEqual(Object.keys(headers).sort(), ['accept', 'accept-encoding', 'connection', 'host', 'user-agent'])
    assert.equal(headers.accept, 'application/json')
    assert.match(headers['user-agent'] ?? '', /^agent-api-gateway\//)
    const text = JSON.stringify(headers)
    for (const trace of ['CANARY', 'evil', '198.51', account.live, account.email]) assert.ok(!text.includes(trace))
  })
})
