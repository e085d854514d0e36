import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { createLog } from '../../src/log.ts'
import { openRedis } from '../../src/redis/connection.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { rawHttp } from '../support/raw-http.ts'

const ROUTES: [string, string][] = [
  ['GET', '/'],
  ['GET', '/assets/1/console/browser/overview.js'],
  ['GET', '/assets/1/console/browser/render.js'],
  ['GET', '/overview/events'],
  ['GET', '/metrics'],
  ['GET', '/no-such-route'],
  ['GET', '/v1/operator/users'],
  ['PATCH', '/v1/operator/users/1'],
  ['POST', '/v1/operator/users/1/password'],
  ['GET', '/v1/operator/upstreams'],
  ['PATCH', '/v1/operator/upstreams/weather'],
  ['GET', '/v1/operator/settings'],
  ['POST', '/v1/operator/settings'],
  ['GET', '/v1/operator/overview'],
  ['GET', '/v1/operator/audit'],
  ['GET', '/v1/operator/notice'],
  ['PUT', '/v1/operator/notice'],
  ['DELETE', '/v1/operator/notice'],
  ['GET', '/v1/operator/upstreams/weather/queue'],
  ['POST', '/v1/operator/upstreams/weather/pause'],
  ['POST', '/v1/operator/upstreams/weather/resume'],
  ['POST', '/v1/operator/upstreams/weather/probe'],
  ['POST', '/notice'],
  ['GET', '/accounts'],
  ['GET', '/accounts/1'],
  ['POST', '/accounts/1'],
  ['POST', '/accounts/1/keys/1/revoke'],
  ['GET', '/queues'],
  ['GET', '/queues/weather'],
  ['GET', '/runbooks'],
  ['GET', '/book'],
  ['GET', '/book/configuration'],
  ['GET', '/audit'],
  ['GET', '/audit.ndjson'],
]

describe('the guard of the console', () => {
  let gateway: Gateway
  let url: string
  let token: string

  before(async () => {
    gateway = await startGateway({ isInProcess: true, workers: 0 })
    token = gateway.environment.OPERATOR_TOKEN ?? ''
    url = await gateway.startConsole()
  })
  after(async () => await gateway.stop())

  const ask = (method: string, path: string, headers: Record<string, string> = {}, base = url) =>
    fetch(base + path, { method, headers, redirect: 'manual', signal: AbortSignal.timeout(5_000) })
  const logIn = async (origin = url): Promise<string> => {
    const response = await fetch(`${url}/login`, {
      method: 'POST',
      body: new URLSearchParams({ token }),
      headers: { origin },
      redirect: 'manual',
    })
    assert.equal(response.status, 303)
    return response.headers.get('set-cookie') ?? ''
  }

  it('the guard of the console marks its cookie Secure only if the browser came by TLS, because otherwise nobody could log in', async () => {
    assert.doesNotMatch(await logIn(), /Secure/)
    const attributes = (await logIn(url.replace('http:', 'https:'))).split('; ')
    for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Secure'])
      assert.ok(attributes.includes(attribute), attribute)
  })

  it('the console refuses requests to unknown routes in the usual form of errors, with the id of the request', async () => {
    const host = 'Host: console\r\n'
    for (const [bytes, status, code] of [
      ['GARBAGE\r\n\r\n', 400, 'VALIDATION_ERROR'],
      [`GET / HTTP/1.1\r\n${host}X-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
      ['GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'VALIDATION_ERROR'],
      [`GET / HTTP/1.1\r\n${host}Expect: x\r\nConnection: close\r\n\r\n`, 400, 'VALIDATION_ERROR'],
      [`GET /v1/operator/%zz HTTP/1.1\r\n${host}Connection: close\r\n\r\n`, 401, 'AUTH_REQUIRED'],
      [`CONNECT api.example:443 HTTP/1.1\r\n${host}\r\n`, 400, 'VALIDATION_ERROR'],
    ] as const) {
      const answer = await rawHttp(Number(new URL(url).port), bytes)
      const shown = bytes.slice(0, 40)
      assert.deepEqual([answer.status, JSON.parse(answer.body).code], [status, code], shown)
      assert.match(answer.headers['x-request-id'] ?? '', /^req_/, shown)
    }
  })

  it('the guard of the console leads from the log-in to the page that was opened, and to no other site', async () => {
    const opened = await ask('GET', '/runbooks?x=1', { accept: 'text/html' })
    assert.match(await opened.text(), /name="next" value="\/runbooks\?x=1"/)
    const leadsTo = async (next: string) => {
      const body = new URLSearchParams({ token, next })
      const response = await fetch(`${url}/login`, {
        method: 'POST',
        body,
        headers: { origin: url },
        redirect: 'manual',
      })
      return response.headers.get('location')
    }
    assert.equal(await leadsTo('/runbooks?x=1'), '/runbooks?x=1')
    for (const next of [
      '//evil.example/x',
      '/\\evil.example',
      'https://evil.example',
      '/\t/evil.example',
      'runbooks',
      '',
    ]) {
      const target = new URL((await leadsTo(next)) ?? '', url)
      assert.equal(target.origin, url, next)
    }
  })

  it('the guard of the console refuses every route without the token, with a wrong token, and with a forged or foreign cookie', async () => {
    const refused: Record<string, string>[] = [
      {},
      { authorization: `Basic ${Buffer.from(`operator:${token}`).toString('base64')}` },
      { cookie: 'agw_console=9999999999999.abc.def' },
      { 'x-api-key': token },
    ]
    for (const [method, path] of ROUTES) {
      for (const headers of refused) {
        const { status } = await ask(method, path, headers)
        assert.equal(status, 401, `${method} ${path} ${JSON.stringify(headers)}`)
      }
    }
  })

  it('the guard of the console refuses every route to a page of another origin, whatever it sends', async () => {
    const cookie = (await logIn()).split(';')[0] ?? ''
    const foreign: Record<string, string>[] = [
      { cookie, origin: 'https://evil.example' },
      { cookie, 'sec-fetch-site': 'cross-site' },
      { cookie, origin: 'null' },
      { cookie, 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' },
    ]
    for (const [method, path] of ROUTES) {
      for (const headers of foreign) {
        const { status } = await ask(method, path, headers)
        assert.equal(status, 403, `${method} ${path} ${JSON.stringify(headers)}`)
      }
    }
  })

  it('the guard of the console refuses changes that have only the cookie, and all changes on the pages of the queues', async () => {
    const cookie = (await logIn()).split(';')[0] ?? ''
    const writes = ROUTES.filter(([method]) => method !== 'GET')
    for (const [method, path] of writes) assert.equal((await ask(method, path, { cookie })).status, 403, path)
    const bearer = { authorization: `Bearer ${token}` }
    const own = { cookie, 'sec-fetch-site': 'same-origin' }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      for (const path of ['/queues', '/queues/weather'])
        for (const headers of [bearer, own]) assert.equal((await ask(method, path, headers)).status, 405, path)
    assert.equal((await ask('POST', '/v1/operator/upstreams/weather/pause', bearer)).status, 200)
    assert.equal((await ask('POST', '/v1/operator/upstreams/weather/resume', own)).status, 200)
  })

  it('the guard of the console says which token is wanted, and not how a caller logs in', async () => {
    const wanted =
      'Send Authorization: Bearer with the value of OPERATOR_TOKEN; API keys and sessions are not accepted here.'
    for (const [headers, code, message] of [
      [{}, 'AUTH_REQUIRED', 'The operator token is required.'],
      [{ 'x-api-key': token }, 'AUTH_REQUIRED', 'The operator token is required.'],
      [{ authorization: 'Bearer wrong' }, 'INVALID_TOKEN', 'The operator token is not valid.'],
      [
        { authorization: token },
        'INVALID_TOKEN',
        'The Authorization header must be the word Bearer, a space, and a token.',
      ],
    ] as const) {
      const body = Object(await (await ask('GET', '/v1/operator/overview', headers)).json())
      assert.deepEqual([body.code, body.message, body.hint], [code, message, wanted])
    }
    const form = { method: 'POST', body: new URLSearchParams({ token: 'wrong' }), headers: { origin: url } }
    const page = await (await fetch(`${url}/login`, form)).text()
    assert.match(page, /Wrong token\. The operator token is the value of OPERATOR_TOKEN, which npm start prints\./)
  })

  it('the guard of the console answers a failure with a page for a person who has the token, and with the code for a program', async () => {
    const bearer = { authorization: `Bearer ${token}` }
    const person = { ...bearer, accept: 'text/html,*/*;q=0.8' }
    for (const [path, status, words, allow] of [
      [`/accounts/${randomUUID()}`, 404, 'No account has this id.', null],
      ['/calls?status=9', 400, 'Parameter status ', null],
      ['/audit?cursor=x', 400, 'Parameter cursor ', null],
      ['/nothing', 404, 'The console has no page /nothing.', null],
      ['/%3Cb%3E?x', 404, 'The console has no page /%3Cb%3E.', null],
      ['/queues/nothing', 404, 'The catalog has no such API.', null],
      ['/logout', 405, 'The console has no page /logout.', 'POST'],
    ] as const) {
      const response = await ask('GET', path, person)
      const text = await response.text()
      assert.deepEqual([response.status, response.headers.get('content-type')], [status, 'text/html; charset=utf-8'])
      assert.match(response.headers.get('content-security-policy') ?? '', /default-src 'none'/)
      assert.deepEqual([response.headers.get('allow'), response.headers.get('cache-control')], [allow, 'no-store'])
      assert.ok(text.includes(words), text)
      // The page has no script and no part that renews itself, because these would replace the
      // message.
      assert.ok(text.includes('<a href="/queues">') && !/<script|id="live"/.test(text), text)
      assert.match(
        Object(await (await ask('GET', path, bearer)).json()).code,
        /^(NOT_FOUND|METHOD_NOT_ALLOWED|USER_NOT_FOUND|VALIDATION_ERROR)$/,
      )
    }
    const form = { ...bearer, accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' }
    const body = 'disabled=true'
    const sent = await fetch(`${url}/accounts/${randomUUID()}`, { method: 'POST', headers: form, body })
    assert.deepEqual([sent.status, sent.headers.get('content-type')], [404, 'text/html; charset=utf-8'])
    const ofApi = await ask('GET', '/v1/operator/nothing', person)
    const { code, hint } = Object(await ofApi.json())
    assert.deepEqual([code, hint], ['NOT_FOUND', 'See operator --help for what operators can do.'])
  })

  it('the guard of the console redirects a person with a session from the log-in page to the overview', async () => {
    const cookie = (await logIn()).split(';')[0] ?? ''
    const { status, headers } = await ask('GET', '/login', { cookie, accept: 'text/html' })
    assert.deepEqual([status, headers.get('location')], [303, '/'])
    assert.equal((await ask('GET', '/login', { accept: 'text/html' })).status, 401)
  })

  it('the guard of the console lists the methods of a route only for a caller with the token', async () => {
    const bearer = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const refused = async (method: string, path: string, headers: Record<string, string>) => {
      const response = await ask(method, path, headers)
      return [response.status, Object(await response.json()).code, response.headers.get('allow')]
    }
    const user = '/v1/operator/users/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'
    assert.deepEqual(await refused('PUT', user, bearer), [405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH'])
    assert.deepEqual(await refused('POST', '/v1/operator/audit', bearer), [405, 'METHOD_NOT_ALLOWED', 'GET, HEAD'])
    assert.equal((await ask('HEAD', '/overview/events', bearer)).status, 405)
    assert.deepEqual(await refused('PUT', '/v1/operator/nothing', bearer), [404, 'NOT_FOUND', null])
    assert.deepEqual(await refused('PUT', user, {}), [401, 'AUTH_REQUIRED', null])
  })

  it('the guard of the console has none of its routes on the public port', async () => {
    const bearer = { authorization: `Bearer ${token}` }
    for (const [method, path] of ROUTES.filter(([, to]) => to !== '/')) {
      const { status } = await ask(method, path, bearer, gateway.url)
      assert.equal(status, 404, `${method} ${path}`)
    }
  })

  it('the guard of the console gives a strict cookie that is no secret itself, and shows a person the log-in form', async () => {
    const cookie = await logIn()
    assert.match(cookie, /; HttpOnly/)
    assert.match(cookie, /; SameSite=Strict/)
    assert.ok(!cookie.includes(token))
    const page = await ask('GET', '/', { accept: 'text/html' })
    assert.equal(page.status, 401)
    assert.match(await page.text(), /<form method="post" action="\/login">/)
  })

  it('the guard of the console allows no request to another host and no script but its own', async () => {
    const bearer = { authorization: `Bearer ${token}` }
    for (const path of ['/', '/queues', '/queues/weather']) {
      const response = await ask('GET', path, bearer)
      const policy = response.headers.get('content-security-policy') ?? ''
      assert.match(policy, /default-src 'none'/)
      assert.match(policy, /script-src 'self';/)
      assert.ok(!/https?:/.test(policy))
      assert.ok(!/(?:href|src)="(?:https?:)?\/\//.test(await response.text()), path)
    }
  })

  it('the guard of the console leads from the pages of the queues to the log of calls, where finished calls are', async () => {
    const bearer = { authorization: `Bearer ${token}` }
    for (const path of ['/queues', '/queues/weather'])
      assert.match(
        await (await ask('GET', path, bearer)).text(),
        /Finished calls are in the log of <a href="\/calls">Calls/,
      )
  })

  it('the guard of the console shows the metrics of the fleet to the token', async () => {
    const response = await ask('GET', '/metrics', { authorization: `Bearer ${token}` })
    const text = await response.text()
    for (const line of [
      /^agw_health_score\{slug="weather",process="ops"\} 100$/m,
      /^agw_breaker_open\{slug="weather",process="ops"\} 0$/m,
      /^agw_cap_left\{slug="code-host-search",window="60s",process="ops"\} \d+$/m,
      /^agw_processes\{kind="web",process="ops"\} 1$/m,
      /^nodejs_eventloop_lag_p99_seconds/m,
    ])
      assert.match(text, line)
  })

  it('the guard of the console answers 503 while Redis does not answer, and works again afterwards', async () => {
    const page = async (path = '/') => await (await ask('GET', path, { authorization: `Bearer ${token}` })).text()
    const redis = openRedis(
      [gateway.services.redisUrl],
      'blocking',
      createLog({ level: 'silent', pretty: false }, 'test'),
    )
    try {
      // The server answers nobody for some seconds.
      await redis.call('CLIENT', 'PAUSE', '4000', 'ALL')
      await until(async () => (await page()).includes('Redis does not answer'))
      assert.match(await page('/queues/weather'), /Unknown: Redis does not answer/)
      const metrics = await page('/metrics')
      assert.match(metrics, /^agw_redis_up\{process="ops"\} 0$/m)
      // If a value is not known, it is absent, because 0 would say that all is well.
      assert.doesNotMatch(metrics, /^agw_redis_(latency_seconds|memory)/m)
      await until(async () => !(await page()).includes('Redis does not answer'))
    } finally {
      redis.disconnect()
    }
  })
})
