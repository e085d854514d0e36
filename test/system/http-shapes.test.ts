import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ERRORS, type ErrorCode } from '../../src/errors.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type RawAnswer, rawHttp } from '../support/raw-http.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

const BASE = 'http://localhost:3000'
const HEAD = 'Host: gateway\r\nConnection: close\r\n'
const JSON_TYPE = 'Content-Type: application/json\r\n'

let gateway: Gateway
let upstream: UpstreamServer
let account: Account
let port: number

before(async () => {
  upstream = await startUpstreamServer()
  upstream.play('weather', () => ({
    current_weather: { time: 't', temperature: 1, weathercode: 1, winddirection: 1, is_day: 1 },
  }))
  gateway = await startGateway({ isInProcess: true, environment: upstream.environment('weather', 'news') })
  account = await signUp(gateway)
  port = Number(new URL(gateway.url).port)
})
after(async () => {
  await gateway.stop()
  await upstream.close()
})

const raw = (bytes: string | Buffer, timeoutMs?: number) => rawHttp(port, bytes, timeoutMs)

/** One request with the usual head; `more` are further header lines, each with its line end. */
function ask(method: string, path: string, more = '', body = ''): Promise<RawAnswer> {
  const length = body === '' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return raw(`${method} ${path} HTTP/1.1\r\n${HEAD}${more}${length}\r\n${body}`)
}

const NO_TYPE = 'Content-Type: json\r\n'
const key = () => `X-Api-Key: ${account.test}\r\n`

/**
 * What every refusal has: the status of its code, all members, a request id, and the shape of its
 * address.
 */
function checkRefusal(answer: RawAnswer, code: ErrorCode, shape: 'A' | 'B'): void {
  const { status } = ERRORS[code]
  assert.equal(answer.status, status, answer.text)
  assert.match(answer.headers['x-request-id'] ?? '', /^req_[0-9a-f]{32}$/)
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
  assert.equal(answer.headers['cache-control'], 'no-store')
  const body = JSON.parse(answer.body)
  const told = shape === 'A' ? body : body.error
  if (shape === 'B') assert.deepEqual({ ...body, error: undefined }, { status: 'error', error: undefined })
  assert.deepEqual(
    Object.keys(told).sort(),
    [...(shape === 'A' ? ['error'] : []), 'code', 'docs', 'hint', 'message'].sort(),
  )
  for (const value of Object.values(told)) assert.ok(typeof value === 'string' && value !== '')
  assert.equal(told.code, code)
  assert.equal(told.docs, `${BASE}/docs/errors#${code}`)
}

describe('a request the framework refuses', () => {
  /** [what, code, shape, request]: request lines and bodies. If a key is needed, it is added. */
  const bigHeader = `X-Big: ${'x'.repeat(20_000)}\r\n`
  type Case = [string, ErrorCode, 'A' | 'B', () => Promise<RawAnswer>]
  const cases: Case[] = [
    ['an unknown route', 'NOT_FOUND', 'A', () => ask('GET', '/nope')],
    ['an unknown route, whatever its body', 'NOT_FOUND', 'A', () => ask('POST', '/nope', JSON_TYPE, '{')],
    ['a doubled slash', 'NOT_FOUND', 'A', () => ask('GET', '//v1/catalog')],
    ['NUL in a path', 'NOT_FOUND', 'A', () => ask('GET', '/healthz%00')],
    ['a path of another kind', 'NOT_FOUND', 'A', () => ask('OPTIONS', '*')],
    ['the call route without a credential', 'AUTH_REQUIRED', 'B', () => ask('GET', '/v1/call')],
    ['the call route without an API', 'API_NOT_FOUND', 'B', () => ask('GET', '/v1/call', key())],
    ['an unknown API', 'API_NOT_FOUND', 'B', () => ask('GET', '/v1/call/nope/x', key())],
    ['an encoded slash', 'API_NOT_FOUND', 'B', () => ask('GET', '/v1/call/weather%2fcurrent', key())],
    ['an unknown endpoint', 'ENDPOINT_NOT_FOUND', 'B', () => ask('GET', '/v1/call/weather/nope', key())],
    ['no endpoint', 'ENDPOINT_NOT_FOUND', 'B', () => ask('GET', '/v1/call/weather', key())],
    ['a slash at the end', 'ENDPOINT_NOT_FOUND', 'B', () => ask('GET', '/v1/call/weather/current/', key())],
    ['dots in a path', 'ENDPOINT_NOT_FOUND', 'B', () => ask('GET', '/v1/call/weather/../weather/current', key())],
    ['encoded dots', 'API_NOT_FOUND', 'B', () => ask('GET', '/v1/call/%2e%2e/current', key())],
    ['a doubly encoded path', 'ENDPOINT_NOT_FOUND', 'B', () => ask('GET', '/v1/call/weather/%2563urrent', key())],
    ['a path parameter', 'ENDPOINT_NOT_FOUND', 'B', () => ask('GET', '/v1/call/weather/current;x', key())],
    ['a broken escape without a credential', 'AUTH_REQUIRED', 'A', () => ask('GET', '/v1/teams/%zz')],
    ['a broken escape in an unknown route', 'NOT_FOUND', 'A', () => ask('GET', '/%zz')],
    ['a broken escape in a call without a credential', 'AUTH_REQUIRED', 'B', () => ask('GET', '/v1/call/%zz/x')],
    ['a long id without a credential', 'AUTH_REQUIRED', 'A', () => ask('GET', `/v1/teams/${'x'.repeat(300)}`)],
    ['a broken escape in a call', 'INVALID_ENCODING', 'B', () => ask('GET', '/v1/call/%zz/x', key())],
    ['NUL in a call', 'INVALID_ENCODING', 'B', () => ask('GET', '/v1/call/weather%00/current', key())],
    [
      'a broken escape in the query of a call',
      'INVALID_ENCODING',
      'B',
      () => ask('GET', '/v1/call/weather/current?latitude=%zz', key()),
    ],
    [
      'a body that is too large',
      'PAYLOAD_TOO_LARGE',
      'A',
      () => ask('POST', '/v1/auth/login', `${JSON_TYPE}Content-Length: 1048577\r\n`),
    ],
    [
      'a body that is too large for a call',
      'PAYLOAD_TOO_LARGE',
      'B',
      () => ask('POST', '/v1/call/weather/current', `${key()}${JSON_TYPE}Content-Length: 1048577\r\n`),
    ],
    [
      'a body that is too large, in chunks',
      'PAYLOAD_TOO_LARGE',
      'A',
      () =>
        raw(
          `POST /v1/auth/login HTTP/1.1\r\n${HEAD}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n100001\r\n${'x'.repeat(0x100001)}\r\n0\r\n\r\n`,
        ),
    ],
    ...[9_000, 17_000, 200_000].map(
      (length): Case => [
        `an address of ${length} bytes`,
        'URI_TOO_LONG',
        'A',
        () => ask('GET', `/v1/catalog?${'x'.repeat(length)}`),
      ],
    ),
    [
      'an address over 8 KiB in a call',
      'URI_TOO_LONG',
      'B',
      () => ask('GET', `/v1/call/weather/current?q=${'x'.repeat(9_000)}`, key()),
    ],
    ['no media type', 'UNSUPPORTED_MEDIA_TYPE', 'A', () => ask('POST', '/v1/auth/login', '', '{}')],
    [
      'a form',
      'UNSUPPORTED_MEDIA_TYPE',
      'A',
      () => ask('POST', '/v1/auth/login', 'Content-Type: application/x-www-form-urlencoded\r\n', 'email=a'),
    ],
    ['XML', 'UNSUPPORTED_MEDIA_TYPE', 'A', () => ask('POST', '/v1/auth/login', 'Content-Type: text/xml\r\n', '<a/>')],
    [
      'a compressed body',
      'UNSUPPORTED_MEDIA_TYPE',
      'A',
      () => ask('POST', '/v1/auth/login', `${JSON_TYPE}Content-Encoding: gzip\r\n`, '{}'),
    ],
    [
      'a compressed body in a call',
      'UNSUPPORTED_MEDIA_TYPE',
      'B',
      () => ask('POST', '/v1/call/weather/current', `${key()}${JSON_TYPE}Content-Encoding: gzip\r\n`, '{}'),
    ],
    [
      'a body that is no JSON type in a call',
      'UNSUPPORTED_MEDIA_TYPE',
      'B',
      () => ask('POST', '/v1/call/weather/current', `${key()}Content-Type: application/jsonp\r\n`, '{}'),
    ],
    ['broken JSON', 'INVALID_JSON', 'A', () => ask('POST', '/v1/auth/login', JSON_TYPE, '{')],
    [
      'broken JSON in a call',
      'INVALID_JSON',
      'B',
      () => ask('POST', '/v1/call/weather/current', `${key()}${JSON_TYPE}`, '{'),
    ],
    [
      'an empty JSON body',
      'INVALID_JSON',
      'A',
      () => ask('POST', '/v1/auth/login', `${JSON_TYPE}Content-Length: 0\r\n`),
    ],
    [
      'a JSON list in a call',
      'VALIDATION_ERROR',
      'B',
      () => ask('POST', '/v1/call/weather/current', `${key()}${JSON_TYPE}`, '[]'),
    ],
    ['a header over 16 KiB', 'HEADERS_TOO_LARGE', 'A', () => ask('GET', '/v1/catalog', bigHeader)],
    [
      'a header over 16 KiB in a call',
      'HEADERS_TOO_LARGE',
      'B',
      () => ask('GET', '/v1/call/weather/current', bigHeader),
    ],
    ['no Host', 'VALIDATION_ERROR', 'A', () => raw('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n')],
    ['two Hosts', 'VALIDATION_ERROR', 'A', () => ask('GET', '/healthz', 'Host: other\r\n')],
    ['two Hosts in a call', 'VALIDATION_ERROR', 'B', () => ask('GET', '/v1/call/weather/current', 'host: other\r\n')],
    [
      'two lengths',
      'VALIDATION_ERROR',
      'A',
      () => ask('POST', '/v1/auth/login', `${JSON_TYPE}Content-Length: 3\r\n`, '{}'),
    ],
    [
      'a length and chunks',
      'VALIDATION_ERROR',
      'A',
      () => ask('POST', '/v1/auth/login', `${JSON_TYPE}Transfer-Encoding: chunked\r\n`, '{}'),
    ],
    [
      'an unknown transfer coding',
      'VALIDATION_ERROR',
      'A',
      () => ask('POST', '/v1/auth/login', `${JSON_TYPE}Transfer-Encoding: xchunked\r\n`),
    ],
    ['a folded header', 'VALIDATION_ERROR', 'A', () => ask('GET', '/healthz', 'X-A: b\r\n c\r\n: d\r\n')],
    ['NUL in a header', 'VALIDATION_ERROR', 'A', () => ask('GET', '/healthz', 'X-A: b\0c\r\n')],
    [
      'a coding before chunked',
      'VALIDATION_ERROR',
      'B',
      () =>
        raw(
          `POST /v1/call/weather/current HTTP/1.1\r\n${HEAD}${key()}${JSON_TYPE}Transfer-Encoding: gzip, chunked\r\n\r\n1c\r\n{"latitude":1,"longitude":1}\r\n0\r\n\r\n`,
        ),
    ],
    ['an unknown expectation', 'VALIDATION_ERROR', 'A', () => ask('POST', '/v1/auth/login', 'Expect: x\r\n')],
    [
      'an unknown expectation in a call',
      'VALIDATION_ERROR',
      'B',
      () => ask('GET', '/v1/call/weather/current', `${key()}Expect: 200-ok\r\n`),
    ],
    ['raw UTF-8 in the address', 'INVALID_ENCODING', 'A', () => ask('GET', '/v1/catalog?q=Zürich')],
    [
      'raw UTF-8 in the address of a call',
      'INVALID_ENCODING',
      'B',
      () => ask('GET', '/v1/call/encyclopedia/summary?title=Zürich', key()),
    ],
    [
      'raw Latin-1 in the path',
      'INVALID_ENCODING',
      'A',
      () => raw(Buffer.from(`GET /caf\xe9 HTTP/1.1\r\n${HEAD}\r\n`, 'latin1')),
    ],
    ['CONNECT', 'VALIDATION_ERROR', 'A', () => raw(`CONNECT api.example:443 HTTP/1.1\r\n${HEAD}\r\n`)],
    ['another version of HTTP', 'VALIDATION_ERROR', 'A', () => raw(`GET /healthz HTTP/3.7\r\n${HEAD}\r\n`)],
    ['two lengths', 'VALIDATION_ERROR', 'A', () => ask('POST', '/v1/auth/login', 'Content-Length: 1\r\n', '{}')],
    ['bytes that are no HTTP', 'VALIDATION_ERROR', 'A', () => raw('\x16\x03\x01\x02\x00\x01\x00hello\r\n\r\n')],
  ]
  for (const [what, code, shape, run] of cases) {
    it(`a request the framework refuses for ${what} is answered ${code} in shape ${shape}`, async () =>
      checkRefusal(await run(), code, shape))
  }

  it('a request the framework refuses for a space in its address is told how to write the space', async () => {
    const { status, body } = await raw(`GET /v1/call/encyclopedia/summary?title=New York HTTP/1.1\r\n${HEAD}\r\n`)
    assert.equal(status, 400)
    assert.match(body, /an address without spaces \(a space is %20\)/)
    assert.doesNotMatch(body, /field named/)
  })

  it('a request the framework refuses for a method is answered 405 with the methods there are, exotic methods included', async () => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'SEARCH', 'LINK']) {
      for (const [path, shape, allow, words] of [
        ['/v1/catalog', 'A', 'GET, HEAD', 'GET'],
        ['/v1/auth/login', 'A', 'POST', 'POST'],
        ['/v1/call/weather/current', 'B', 'GET, HEAD, POST', 'GET or POST'],
      ] as const) {
        const answer = await ask(method, path, key())
        checkRefusal(answer, 'METHOD_NOT_ALLOWED', shape)
        assert.equal(answer.headers.allow, allow, `${method} ${path}`)
        assert.match(answer.body, new RegExp(`allows only ${words}\\..*allow=${allow.replaceAll(' ', '')}`))
      }
    }
    for (const method of ['PUT', 'TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH']) {
      checkRefusal(await ask(method, '/v1/call/weather/current'), 'AUTH_REQUIRED', 'B')
      checkRefusal(await ask(method, '/v1/call/weather/nope', key()), 'ENDPOINT_NOT_FOUND', 'B')
    }
    const withBody = await ask('PUT', '/v1/catalog', 'Content-Type: text/plain\r\n', 'x')
    checkRefusal(withBody, 'METHOD_NOT_ALLOWED', 'A')
  })

  it('the answer to a request that the framework refuses says what to change', async () => {
    for (const [bytes, words] of [
      [`GET /healthz?q=ü HTTP/1.1\r\n${HEAD}\r\n`, /Percent-encode the address/],
      [`BREW /healthz HTTP/1.1\r\n${HEAD}\r\n`, /its method is not an HTTP method/],
      [`GET /healthz HTTP/3.7\r\n${HEAD}\r\n`, /does not end with HTTP\/1\.0 or HTTP\/1\.1, CR and LF/],
      [`GET /healthz HTTP/1.1\n${HEAD}\r\n`, /does not end with HTTP\/1\.0 or HTTP\/1\.1, CR and LF/],
      [
        `POST /v1/auth/login HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n`,
        /Content-Length is not a whole number, or Transfer-Encoding is present too/,
      ],
      [
        `POST /v1/auth/login HTTP/1.1\r\n${HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`,
        /Transfer-Encoding is not chunked, or Content-Length is present too/,
      ],
      [
        `POST /v1/auth/login HTTP/1.1\r\n${HEAD}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n2;${'a'.repeat(20_000)}\r\n`,
        /Send chunks without extensions/,
      ],
      [`POST /v1/auth/login HTTP/1.1\r\n${HEAD}Content-Length: x\r\n\r\n`, /Content-Length is not a whole number/],
      [
        `POST /v1/auth/login HTTP/1.1\r\n${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
        /Content-Length appears twice/,
      ],
      [
        `POST /v1/auth/login HTTP/1.1\r\n${HEAD}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`,
        /size of a chunk/,
      ],
      [`GET /healthz HTTP/1.1\r\n${HEAD}b ad: 1\r\n\r\n`, /a header field contains a character/],
      [`GET /healthz HTTP/1.1\r\n${HEAD}Expect: x\r\n\r\n`, /Send the request without Expect/],
    ] as const) {
      const { text, headers } = await raw(bytes)
      assert.match(text, words)
      assert.match(headers['x-request-id'] ?? '', /^req_/, text)
    }
  })

  it('a credential without a value is absent, and the refusal of a text that is no token says what to send', async () => {
    const path = '/v1/call/weather/current?latitude=1&longitude=1'
    const bearer = `Authorization: Bearer ${account.test}\r\n`
    for (const empty of ['X-Api-Key:\r\n', 'X-Api-Key:  \r\n', 'X-Api-Key:\r\nX-Api-Key: \r\n'])
      assert.equal((await ask('GET', path, bearer + empty)).status, 200)
    assert.equal((await ask('GET', path, `${key()}Authorization:\r\n`)).status, 200)
    for (const empty of ['X-Api-Key:\r\n', 'Authorization: \r\n'])
      checkRefusal(await ask('GET', path, empty), 'AUTH_REQUIRED', 'B')
    checkRefusal(await ask('GET', path, `${bearer}X-Api-Key: wrong\r\n`), 'INVALID_API_KEY', 'B')
    for (const token of ['undefined', 'YOUR_API_KEY', 'nope', 'null']) {
      const { text, status } = await ask('GET', path, `Authorization: Bearer ${token}\r\n`)
      assert.equal(status, 401)
      assert.match(text, /The credential is neither an API key \(agw_…\) nor a session token/)
    }
  })

  it('a request the framework refuses never reaches the upstream', () => assert.equal(upstream.arrivals.length, 0))
})

describe('a request that arrives too slowly', () => {
  it('a request that arrives too slowly is answered 408, in the shape of its address, and closed', async () => {
    const start = `HTTP/1.1\r\nHost: gateway\r\n${JSON_TYPE}Content-Length: 10\r\n`
    const [head, body, call] = await Promise.all([
      raw('GET /healthz HTTP/1.1\r\nHost:', 30_000),
      raw(`POST /v1/auth/login ${start}\r\n{`, 30_000),
      raw(`POST /v1/call/weather/current ${start}${key()}\r\n{`, 30_000),
    ])
    checkRefusal(head, 'REQUEST_TIMEOUT', 'A')
    checkRefusal(body, 'REQUEST_TIMEOUT', 'A')
    checkRefusal(call, 'REQUEST_TIMEOUT', 'B')
    assert.ok(head.tookMs < 22_000, `a header took ${head.tookMs} ms`)
    assert.ok(Math.max(body.tookMs, call.tookMs) < 25_000, `a body took ${body.tookMs} ms`)
  })
})

describe('an answer', () => {
  it('an answer has a request id of its own, never the caller’s', async () => {
    const ids = new Set<string>()
    for (const path of ['/healthz', '/readyz', '/v1/catalog', '/v1/call/weather/current?latitude=1&longitude=1']) {
      const { headers, text } = await ask('GET', path, `${key()}X-Request-Id: mine\r\n`)
      assert.match(headers['x-request-id'] ?? '', /^req_[0-9a-f]{32}$/, text)
      ids.add(headers['x-request-id'] ?? '')
    }
    assert.equal(ids.size, 4)
  })

  it('an answer to HEAD on a read has the headers of GET and no body', async () => {
    for (const path of ['/healthz', '/readyz', '/v1/catalog', '/v1/me', '/v1/keys', '/nope']) {
      const more = `Authorization: Bearer ${account.token}\r\n`
      const askBoth = () => Promise.all([ask('GET', path, more), ask('HEAD', path, more)])
      let [get, head] = await askBoth()
      // If the machine is overloaded, Postgres may not answer in time.
      while (get.status === 503 || head.status === 503) [get, head] = await askBoth()
      assert.equal(head.status, get.status, path)
      assert.equal(head.body, '', path)
      for (const name of ['content-type', 'content-length', 'cache-control']) {
        assert.equal(head.headers[name], get.headers[name], `${name} of ${path}`)
      }
    }
  })

  it('an answer to HEAD on a call has the status and headers of GET and no body, and is charged and refused as GET is', async () => {
    for (const path of [
      '/v1/call/weather/current?latitude=1&longitude=1',
      '/v1/call/weather/current?latitude=x',
      '/v1/call/no/x',
    ]) {
      const [get, head] = [await ask('GET', path, key()), await ask('HEAD', path, key())]
      assert.equal(head.status, get.status, path)
      assert.equal(head.body, '', path)
      for (const name of ['content-type', 'content-length', 'cache-control', 'vary'])
        assert.equal(head.headers[name], get.headers[name], `${name} of ${path}`)
    }
    const caller = await signUp(gateway)
    const monthLeft = async (method: string, longitude: number): Promise<number> => {
      const path = `/v1/call/weather/current?latitude=1&longitude=${longitude}`
      const { status, headers } = await ask(method, path, `X-Api-Key: ${caller.live}\r\n`)
      assert.equal(status, 200)
      return Number(/"month";r=(\d+)/.exec(headers.ratelimit ?? '')?.[1])
    }
    const first = await monthLeft('GET', 1)
    assert.deepEqual([await monthLeft('HEAD', 2), await monthLeft('HEAD', 2)], [first - 1, first - 2])
    checkRefusal(await ask('GET', '/v1/call/weather/current', ''), 'AUTH_REQUIRED', 'B')
    assert.equal((await ask('HEAD', '/v1/call/weather/current', '')).status, 401)
  })

  it('an address in absolute form gets the same answer as its path', async () => {
    const catalog = await ask('GET', 'http://169.254.169.254/v1/catalog')
    assert.equal(catalog.status, 200)
    checkRefusal(await ask('GET', 'http://169.254.169.254/v1/call/nope/x', key()), 'API_NOT_FOUND', 'B')
    assert.equal((await ask('GET', 'http://h/v1/call/weather/current?latitude=1&longitude=1', key())).status, 200)
  })

  it('a call whose body is longer than its Content-Length says is answered, and the rest of the body is refused', async () => {
    const head = `POST /v1/call/weather/current HTTP/1.1\r\nHost: gateway\r\n${key()}${JSON_TYPE}`
    const body = '{"latitude":1,"longitude":1}'
    const { text } = await raw(`${head}Content-Length: ${body.length}\r\n\r\n${body}too much`)
    assert.deepEqual(
      [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ['200', '400'],
    )
  })

  it('a request behind a body that was refused is answered on the same connection', async () => {
    const body = '{"a'
    const head = `POST /v1/auth/login HTTP/1.1\r\nHost: gateway\r\n`
    const framings = [
      `Content-Length: ${body.length}\r\n\r\n${body}`,
      `Transfer-Encoding: chunked\r\n\r\n3\r\n${body}\r\n0\r\n\r\n`,
    ]
    for (const type of ['application/json', 'text/plain']) {
      for (const framing of framings) {
        const refused = `${head}Content-Type: ${type}\r\n${framing}`
        const { text } = await raw(`${refused}GET /healthz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n`)
        assert.deepEqual(
          [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
          [type === 'text/plain' ? '415' : '400', '200'],
        )
      }
    }
  })

  it('an answer to pipelined requests comes in their order', async () => {
    const one = (path: string, close = '') => `GET ${path} HTTP/1.1\r\nHost: gateway\r\n${key()}${close}\r\n`
    const call = '/v1/call/weather/current?latitude=1&longitude=1'
    const { text } = await raw(one(call) + one('/healthz') + one('/nope', 'Connection: close\r\n'))
    assert.deepEqual(
      [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ['200', '200', '404'],
    )
  })
})

describe('the checks of a call', () => {
  const bad = 'latitude=900'
  const good = 'latitude=1&longitude=1'
  /** Each row fails its own check and every later check. */
  const rows: [string, ErrorCode, () => Promise<RawAnswer>][] = [
    ['no credential', 'AUTH_REQUIRED', () => ask('PUT', '/v1/call/nope/x?latitude=%zz', JSON_TYPE, '{')],
    ['no credential of a wrong media type', 'AUTH_REQUIRED', () => ask('POST', '/v1/call/nope/x', NO_TYPE, '{')],
    [
      'a wrong credential',
      'INVALID_API_KEY',
      () => ask('PUT', '/v1/call/nope/x', `X-Api-Key: agw_live_x\r\n${JSON_TYPE}`, '{'),
    ],
    ['an unknown API', 'API_NOT_FOUND', () => ask('PUT', `/v1/call/nope/x?${bad}`, `${key()}${JSON_TYPE}`, '{')],
    [
      'an unknown endpoint',
      'ENDPOINT_NOT_FOUND',
      () => ask('PUT', `/v1/call/news/nope?${bad}`, `${key()}${JSON_TYPE}`, '{'),
    ],
    ['a wrong method', 'METHOD_NOT_ALLOWED', () => ask('PUT', '/v1/call/news/top?max=99', `${key()}${JSON_TYPE}`, '{')],
    [
      'a higher tier',
      'PLAN_UPGRADE_REQUIRED',
      () => ask('POST', '/v1/call/news/top?max=99', `${key()}${JSON_TYPE}`, '{'),
    ],
    [
      'a broken body',
      'INVALID_JSON',
      () => ask('POST', `/v1/call/weather/current?${good}`, `${key()}${JSON_TYPE}`, '{'),
    ],
    [
      'a body of no media type',
      'UNSUPPORTED_MEDIA_TYPE',
      () => ask('POST', `/v1/call/weather/current?${bad}`, `${key()}${NO_TYPE}`, '{'),
    ],
    [
      'a wrong parameter beside no media type',
      'INVALID_PARAMETER',
      () => ask('POST', `/v1/call/weather/current?${bad}`, key() + NO_TYPE),
    ],
    ['a wrong parameter', 'INVALID_PARAMETER', () => ask('GET', `/v1/call/weather/current?${bad}`, key())],
  ]
  for (const [what, code, run] of rows) {
    it(`the checks of a call end at ${what} with ${code}, whatever else is wrong`, async () =>
      checkRefusal(await run(), code, 'B'))
  }

  it('the checks of a call take the unit of the minute only if all checks before it pass, and end there with RATE_LIMIT_EXCEEDED', async () => {
    const fresh = await signUp(gateway)
    const path = `/v1/call/weather/current?${good}`
    for (const refused of ['/v1/call/nope/x', `/v1/call/weather/current?${bad}`, '/v1/call/news/top']) {
      await send(gateway, refused, { key: fresh.live })
    }
    for (let count = 0; count < 10; count += 1) {
      assert.equal((await send(gateway, path, { key: fresh.live })).status, 200, `call ${count + 1}`)
    }
    const over = await send(gateway, path, { key: fresh.live })
    assert.deepEqual([over.status, over.body.error.code], [429, 'RATE_LIMIT_EXCEEDED'])
    const wrongToo = await send(gateway, `/v1/call/weather/current?${bad}`, { key: fresh.live })
    assert.deepEqual([wrongToo.status, wrongToo.body.error.code], [400, 'INVALID_PARAMETER'])
  })
})
