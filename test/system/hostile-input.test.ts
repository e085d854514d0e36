import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { FastifyInstance, HTTPMethods } from 'fastify'
import pg from 'pg'
import { listRoutes } from '../../src/http/server/method-not-allowed.ts'
import { REFUSED } from '../support/authorisation-table.ts'
import { type Account, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type RawAnswer, rawRequest, sendRaw } from '../support/raw-request.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

/** A good body for every route that reads a body. The hostile bodies are variations of it. */
const BODIES: Record<string, Record<string, unknown>> = {
  'POST /v1/auth/signup': { email: 'someone@example.com', password: 'long enough' },
  'POST /v1/auth/login': { email: 'someone@example.com', password: 'long enough' },
  'POST /v1/auth/password': { currentPassword: 'long enough', newPassword: 'long enough too' },
  'POST /v1/auth/verify': { token: 'a.b.c' },
  'POST /v1/auth/reset': { email: 'someone@example.com' },
  'DELETE /v1/me': { password: 'long enough' },
  'PUT /v1/me/notices': { byMail: false },
  'POST /v1/keys': { label: 'label', environment: 'test', addresses: ['192.0.2.0/24'] },
  'PATCH /v1/keys/:id': { label: 'label', addresses: ['192.0.2.0/24'] },
  'POST /v1/keys/:id/rotate': { overlapSeconds: 0 },
  'PATCH /v1/connections/:id': { addresses: ['192.0.2.0/24'], limits: { perMonth: 5 } },
  'POST /v1/teams': { name: 'name' },
  'PUT /v1/teams/:id': { name: 'name' },
  'POST /v1/teams/:id/transfer': { memberId: 'member' },
  'POST /v1/teams/:id/members': { email: 'someone@example.com', role: 'member' },
  'PUT /v1/teams/:id/members/:memberId': { role: 'admin' },
  'PUT /v1/provider-keys/:apiSlug': { key: 'a-key' },
  'POST /v1/call/*': { username: 'octocat' },
  'POST /v1/batch': { calls: [{ api: 'code-host-user', endpoint: '/profile' }] },
}

/** An optional member that is null counts as left out, and a key without a label has null there. */
const MAY_BE_NULL = new Set([
  'POST /v1/keys label',
  'POST /v1/keys environment',
  'POST /v1/keys addresses',
  'PATCH /v1/keys/:id label',
  'PATCH /v1/keys/:id addresses',
  'POST /v1/keys/:id/rotate overlapSeconds',
  'POST /v1/teams/:id/members role',
])

/** Routes whose method could carry a body, but that read none. */
const WITHOUT_BODY = new Set([
  'POST /v1/auth/logout',
  'POST /v1/auth/verification',
  'POST /v1/provider-keys/:apiSlug/validate',
  'DELETE /v1/keys/:id',
  'DELETE /v1/calls/:id',
  'DELETE /v1/connections/:id',
  'DELETE /v1/teams/:id',
  'DELETE /v1/teams/:id/members/:memberId',
  'DELETE /v1/provider-keys/:apiSlug',
])

/**
 * Bodies of another protocol, and the forms of the portal's own pages. They have tests of their
 * own.
 */
const ELSEWHERE = new Set([
  'POST /mcp',
  'POST /mcp/:slug',
  'POST /verify',
  'POST /forgot',
  'POST /reset',
  'POST /login/claim',
  'POST /oauth/register',
  'POST /oauth/token',
  'POST /oauth/revoke',
  'POST /connect/:uid/decision',
  'POST /portal/login',
  'POST /portal/logout',
  'POST /portal/signup',
])

describe('hostile input', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let app: FastifyInstance
  let database: pg.Client
  let account: Account
  let teamId = ''
  let memberId = ''
  let routes: string[] = []
  let bodyBytesMax: Map<string, number | undefined>

  before(async () => {
    upstream = await startUpstreamServer()
    gateway = await startGateway({
      isInProcess: true,
      environment: {
        ...upstream.environment('code-host-user'),
        ...{ OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_CLIENT_ID: 'x', OIDC_CLIENT_SECRET: 'y', OIDC_ACCOUNTS: 'on' },
        PLAN_LIMITS: '{"Free":{"perMinute":100000,"perMonth":1000000}}',
      },
    })
    database = new pg.Client({ connectionString: gateway.services.databaseUrl })
    await database.connect()
    account = await signUp(gateway)
    teamId = (await send(gateway, '/v1/teams', { token: account.token, body: { name: 'T' } })).body.team.id
    const member = await signUp(gateway)
    memberId = member.id
    await send(gateway, `/v1/teams/${teamId}/members`, { token: account.token, body: { email: member.email } })
    app = gateway.apps.get(gateway.url) ?? assert.fail()
    const listed = listRoutes(app).map(({ method, url, options }) => [`${method} ${url}`, options.bodyLimit] as const)
    routes = [...new Set(listed.map(([route]) => route))]
    bodyBytesMax = new Map(listed)
  })
  after(async () => {
    await database.end()
    await gateway.stop()
    await upstream.close()
  })

  const pathOf = (route: string) =>
    (route.split(' ')[1] ?? '')
      .replace('/v1/call/*', '/v1/call/code-host-user/profile')
      .replace('/v1/teams/:id', `/v1/teams/${teamId}`)
      .replace(':memberId', memberId)
      .replace(':apiSlug', 'news')
      .replace(':slug', 'weather')
      .replace(':id', randomUUID())
      .replace('*', 'x')

  const headersOf = (): Record<string, string> => ({ Authorization: `Bearer ${account.token}` })

  /** Sends a body without a connection, which would cost as much as the answer. */
  const sendBody = async (route: string, body: string | Buffer, given: Record<string, string> = {}) => {
    const [method = ''] = route.split(' ')
    const {
      statusCode,
      headers,
      body: text,
    } = await app.inject({
      method: method as HTTPMethods,
      url: pathOf(route),
      headers: { ...headersOf(), 'content-type': 'application/json', ...given },
      payload: body,
    })
    const lines = Object.entries(headers).map(([name, value]) => [name, String(value)])
    return { status: statusCode, headers: Object.fromEntries(lines) as Record<string, string>, body: text }
  }

  /** One of our errors, in the shape of its route, that repeats nothing of the input. */
  function assertRefused(answer: RawAnswer, status: number, code: string | undefined, what: string): void {
    assert.equal(answer.status, status, `${what}: ${answer.body.slice(0, 300)}`)
    assert.match(answer.headers['content-type'] ?? '', /^application\/json; charset=utf-8$/, what)
    const body = JSON.parse(answer.body)
    const error = body.status === 'error' ? body.error : body
    const names =
      body.status === 'error' ? ['code', 'docs', 'hint', 'message'] : ['code', 'docs', 'error', 'hint', 'message']
    assert.deepEqual(Object.keys(error).sort(), names, what)
    assert.ok(
      Object.values(error).every((value) => typeof value === 'string'),
      what,
    )
    if (code !== undefined) assert.equal(error.code, code, `${what}: ${error.message}`)
    assert.match(error.docs, new RegExp(`/docs/errors#${error.code}$`))
  }

  function assertShape(answer: RawAnswer, path: string, what: string): void {
    const isCall = JSON.parse(answer.body).status === 'error'
    assert.equal(isCall, path.startsWith('/v1/call/'), `${what}: shape`)
  }

  async function snapshot(): Promise<string> {
    const { rows } = await database.query(`select
      (select count(*) from users) as users, (select json_agg(t order by id) from teams t) as teams,
      (select json_agg(m order by team_id, user_id) from team_members m) as members,
      (select count(*) from api_keys where revoked_at is null) as keys, (select count(*) from provider_keys) as provider_keys,
      (select json_agg(password_hash order by id) from users) as passwords`)
    return JSON.stringify(rows)
  }

  /**
   * Sends hostile requests. None may store anything or reach an upstream, and the node must stay
   * up.
   */
  async function withoutEffect(attack: () => Promise<void>): Promise<void> {
    const before = await snapshot()
    const arrivals = upstream.arrivals.length
    await attack()
    assert.equal(await snapshot(), before)
    assert.equal(upstream.arrivals.length, arrivals)
    assert.equal((await send(gateway, '/v1/me', { token: account.token })).status, 200)
  }

  it('hostile input has a body in this table for every route that may read one', () => {
    const reading = routes.filter((route) => !/^(GET|HEAD|OPTIONS) /.test(route) && !REFUSED.has(route))
    assert.deepEqual(
      reading.filter((route) => !(route in BODIES) && !WITHOUT_BODY.has(route) && !ELSEWHERE.has(route)),
      [],
    )
  })

  it('hostile input that is not exactly one JSON value is refused on every route that reads a body', async () => {
    await withoutEffect(async () => {
      const good = '{"name":"x"}'
      const large = [
        ['['.repeat(300_000), 'VALIDATION_ERROR'],
        [`{"a":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`, 'VALIDATION_ERROR'],
        [`{${Array.from({ length: 10_001 }, (_, index) => `"m${index}":1`).join()}}`, 'VALIDATION_ERROR'],
      ] as const
      for (const route of Object.keys(BODIES)) {
        for (const [body, code] of [
          ['{', 'INVALID_JSON'],
          [`${good}x`, 'INVALID_JSON'],
          ["{'name':'x'}", 'INVALID_JSON'],
          ['{"name":NaN}', 'INVALID_JSON'],
          ['{"name":"x",}', 'INVALID_JSON'],
          ['{"name":"x","name":"y"}', 'INVALID_JSON'],
          ['{"name":"x","\\u006eame":"y"}', 'INVALID_JSON'],
          ['{"__proto__":{"admin":true}}', 'VALIDATION_ERROR'],
          ['{"\\u005f_proto__":1}', 'VALIDATION_ERROR'],
          ['{"constructor":{"prototype":{"admin":true}}}', 'VALIDATION_ERROR'],
          [`${'['.repeat(33)}${']'.repeat(33)}`, 'VALIDATION_ERROR'],
          ...large,
        ] as const) {
          const answer = await sendBody(route, body)
          // If a body is too large for its route, the node does not parse it.
          if (body.length > (bodyBytesMax.get(route) ?? 16 * 1_024))
            assertRefused(answer, 413, 'PAYLOAD_TOO_LARGE', route)
          else assertRefused(answer, 400, code, `${route} ${body.slice(0, 60)}`)
        }
      }
    })
  })

  it('an empty body counts as no body, whatever its content type is', async () => {
    const withType = async (route: string, type: string) => await sendBody(route, '', { 'content-type': type })
    for (const type of ['application/json', 'application/json; charset=latin1', 'text/plain']) {
      const made = await withType('POST /v1/keys', type)
      assert.equal(made.status, 201, made.body)
      const { id } = JSON.parse(made.body)
      const headers = { ...headersOf(), 'Content-Type': type }
      assert.equal((await fetch(`${gateway.url}/v1/keys/${id}`, { method: 'DELETE', headers })).status, 204)
      assertRefused(await withType('POST /v1/teams', type), 400, 'INVALID_JSON', type)
      const call = await withType('POST /v1/call/*', type)
      assertRefused(call, 400, 'INVALID_PARAMETER', 'a call without its parameter')
    }
  })

  it('hostile input of another type than an object with the right members is refused', async () => {
    await withoutEffect(async () => {
      for (const [route, good] of Object.entries(BODIES)) {
        for (const body of ['[]', 'null', '"text"', '7', 'true']) {
          assertRefused(await sendBody(route, body), 400, undefined, `${route} ${body}`)
        }
        const [first] = Object.keys(good)
        for (const name of Object.keys(good)) {
          const long = name === first ? [`"${'\u{1f600}'.repeat(120_000)}"`] : [`"${'\u{1f600}'.repeat(1_025)}"`]
          for (const value of ['{"a":1}', '[]', '1e400', 'null', '{"$ne":null}', ...long]) {
            if (value === 'null' && MAY_BE_NULL.has(`${route} ${name}`)) continue
            const body = JSON.stringify({ ...good, [name]: '@@' }).replace('"@@"', value)
            const answer = await sendBody(route, body)
            assert.ok(
              answer.status >= 400 && answer.status < 500,
              `${route} ${name} ${body.slice(0, 80)}: ${answer.status}`,
            )
          }
        }
      }
    })
  })

  it('hostile input with text that is not valid Unicode is refused in every member', async () => {
    await withoutEffect(async () => {
      for (const [route, good] of Object.entries(BODIES)) {
        for (const name of [...Object.keys(good), 'other']) {
          for (const text of ['\\u0000', 'a\\u0000b', '\\ud800', '\\udc00\\ud800', '\\ufffe', '\\uffff']) {
            const body = JSON.stringify({ ...good, [name]: '@@' }).replace('@@', text)
            assertRefused(await sendBody(route, body), 400, 'INVALID_ENCODING', `${route} ${name} ${text}`)
          }
        }
        for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
          const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('"}')])
          assertRefused(await sendBody(route, body), 400, 'INVALID_ENCODING', `${route} ${bytes}`)
        }
      }
    })
  })

  it('hostile input of another content type or encoding is refused with 415', async () => {
    await withoutEffect(async () => {
      for (const [route, good] of Object.entries(BODIES)) {
        const body = JSON.stringify(good)
        for (const headers of [
          { 'content-type': 'application/xml' },
          { 'content-type': 'application/x-www-form-urlencoded' },
          { 'content-type': 'multipart/form-data; boundary=x' },
          { 'content-type': 'text/plain' },
          { 'content-type': 'application/jsonp; charset=utf-8' },
          { 'content-type': '' },
          { 'content-type': 'json' },
          { 'content-encoding': 'gzip' },
        ]) {
          const answer = await sendBody(route, body, headers)
          assertRefused(answer, 415, 'UNSUPPORTED_MEDIA_TYPE', `${route} ${JSON.stringify(headers)}`)
        }
      }
    })
  })

  it('hostile input with a number that a double cannot hold is refused on every route, in any member', async () => {
    await withoutEffect(async () => {
      for (const [route, good] of Object.entries(BODIES)) {
        for (const number of ['9007199254740993', '-1e400', '1e21', '0.12345678901234567890']) {
          const code = route.includes('/v1/call/') ? 'INVALID_PARAMETER' : 'VALIDATION_ERROR'
          for (const value of [number, `[${number}]`, `{"a":${number}}`]) {
            const body = `${JSON.stringify(good).slice(0, -1)},"other":${value}}`
            const answer = await sendBody(route, body.replace('{,', '{'))
            assertRefused(answer, 400, code, `${route} ${value}`)
            assert.match(answer.body, /send it as a string/, `${route} ${value}`)
          }
        }
      }
      for (const members of ['"id":9007199254740993', '"id":1,"params":{"name":"x","arguments":{"a":1e400}}']) {
        const answer = await sendBody('POST /mcp', `{"jsonrpc":"2.0","method":"tools/call",${members}}`)
        assertRefused(answer, 400, 'VALIDATION_ERROR', members)
      }
    })
  })

  it('hostile input that is too large is refused: body 413, address 414, header 431', async () => {
    await withoutEffect(async () => {
      const tooLarge = `{"name":"${'x'.repeat(1024 * 1024)}"}`
      for (const route of Object.keys(BODIES)) {
        const path = pathOf(route)
        const method = route.split(' ')[0] ?? ''
        const typed = { ...headersOf(), 'Content-Type': 'application/json' }
        const declaring = { ...typed, 'Content-Length': '9999999999' }
        const declared = await sendRaw(gateway.url, rawRequest({ method, path, headers: declaring, body: '{' }))
        assertRefused(declared, 413, 'PAYLOAD_TOO_LARGE', `${route} declared`)
        assertShape(declared, path, route)
        const chunks = `${tooLarge.length.toString(16)}\r\n${tooLarge}\r\n0\r\n\r\n`
        const head = rawRequest({ method, path, headers: { ...typed, 'Transfer-Encoding': 'chunked' } })
        assertRefused(await sendRaw(gateway.url, [head, chunks]), 413, 'PAYLOAD_TOO_LARGE', `${route} chunked`)
      }
      for (const route of routes) {
        const method = route.split(' ')[0] ?? ''
        if (method === 'HEAD') continue
        const path = pathOf(route)
        const long = await sendRaw(
          gateway.url,
          rawRequest({ method, path: `${path}?q=${'x'.repeat(9_000)}`, headers: headersOf() }),
        )
        assertRefused(long, 414, 'URI_TOO_LONG', route)
        assertShape(long, path, route)
        const wide = await sendRaw(
          gateway.url,
          rawRequest({ method, path, headers: { ...headersOf(), 'X-Filler': 'x'.repeat(20_000) } }),
        )
        assertRefused(wide, 431, 'HEADERS_TOO_LARGE', route)
      }
    })
  })

  it('hostile input by another method is refused with 405 and the methods there are; another address with 404', async () => {
    await withoutEffect(async () => {
      const urls = new Set(routes.map((route) => route.split(' ')[1] ?? ''))
      for (const url of urls) {
        const allowed = routes.filter((route) => route.endsWith(` ${url}`)).map((route) => route.split(' ')[0])
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']) {
          const isRefused = REFUSED.has(`${method} ${url}`)
          if (allowed.includes(method) && !isRefused) continue
          const path = pathOf(`${method} ${url}`)
          const answer = await sendRaw(gateway.url, rawRequest({ method, path, headers: headersOf() }))
          assertRefused(answer, 405, 'METHOD_NOT_ALLOWED', `${method} ${url}`)
          assertShape(answer, path, `${method} ${url}`)
          const expected = url === '/v1/call/*' ? ['GET', 'POST'] : allowed
          const told = (answer.headers.allow ?? '').split(', ')
          for (const name of expected) assert.ok(name && told.includes(name), `${method} ${url}: ${told}`)
        }
      }
      for (const path of [
        '/v2/me',
        '/v1',
        '/v1/me/',
        '/v1/ME',
        '/v1//me',
        '/v1/teams/a/b/c/d',
        '/.env',
        '/v1/operator/users',
      ]) {
        assertRefused(
          await sendRaw(gateway.url, rawRequest({ method: 'GET', path, headers: headersOf() })),
          404,
          'NOT_FOUND',
          path,
        )
      }
      for (const path of [
        '/v1/call',
        '/v1/call/',
        '/v1/call/none/x',
        '/v1/call/weather',
        '/v1/call/weather/none',
        '/v1/call/weather/current/x',
      ]) {
        const answer = await sendRaw(gateway.url, rawRequest({ method: 'GET', path, headers: headersOf() }))
        assertRefused(answer, 404, undefined, path)
        assertShape(answer, '/v1/call/', path)
      }
    })
  })

  it('hostile input in the path is decoded once and refused if it names nothing', async () => {
    await withoutEffect(async () => {
      const file = await sendRaw(gateway.url, rawRequest({ method: 'GET', path: '/docs/apis/%ff.md' }))
      assertRefused(file, 404, 'NOT_FOUND', 'a file')
      for (const segment of [
        '%00',
        '%zz',
        '%',
        '%c0%af',
        '%ff',
        '%ed%a0%80',
        '..',
        '%2e%2e',
        '..%2f..%2fadmin',
        '%252e',
        'a;b',
        "'or 1=1",
        '%0d%0aX-Evil:1',
        'x'.repeat(300),
        '\\..\\',
        '{id}',
        '%F0%9F%98%80',
      ]) {
        for (const start of [
          '/v1/teams/',
          '/v1/keys/',
          `/v1/teams/${teamId}/members/`,
          '/v1/provider-keys/',
          '/v1/call/weather/',
          '/v1/call/',
          '/v1/calls/',
        ]) {
          for (const method of start === '/v1/call/weather/' || start === '/v1/calls/'
            ? ['GET']
            : ['DELETE', 'GET', 'PUT']) {
            const path = `${start}${segment.replaceAll(' ', '%20')}`
            const answer = await sendRaw(
              gateway.url,
              rawRequest({
                method,
                path,
                headers: { ...headersOf(), 'Content-Type': 'application/json' },
                ...(method === 'PUT' ? { body: '{"name":"x","role":"admin","key":"k"}' } : {}),
              }),
            )
            assert.ok(
              [400, 404, 405, 414].includes(answer.status),
              `${method} ${path}: ${answer.status} ${answer.body}`,
            )
            assertRefused(answer, answer.status, undefined, `${method} ${path}`)
            // A malformed id names nothing, whatever it is made of.
            if (start === '/v1/teams/' && !segment.includes('..')) assert.equal(answer.status, 404, `${method} ${path}`)
            assert.equal(answer.headers['x-evil'], undefined)
          }
        }
      }
    })
  })

  it('hostile input in the query of account routes is refused or without effect', async () => {
    await withoutEffect(async () => {
      for (const query of [
        'from=%00',
        'from=%zz',
        'from=%ff',
        'groupBy=__proto__',
        'groupBy[]=day',
        'from[a]=1',
        `groupBy=${'day,'.repeat(500)}day`,
        'from=a&from=b',
      ]) {
        const { status, body } = await sendRaw(
          gateway.url,
          rawRequest({ method: 'GET', path: `/v1/usage?${query}`, headers: headersOf() }),
        )
        assert.ok(status === 400 || status === 200, `${query}: ${status} ${body}`)
      }
    })
  })

  it('hostile input that frames a request in two ways is refused and the connection closed', async () => {
    await withoutEffect(async () => {
      const start = 'POST /v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
      for (const bytes of [
        `${start}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
        `${start}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`,
        `${start}Content-Length: -1\r\n\r\n`,
        `${start}Content-Length: 1e3\r\n\r\n`,
        `${start}Transfer-Encoding: xchunked\r\n\r\n{}`,
        `${start}Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n`,
        `${start}Bad Header: 1\r\n\r\n`,
        `${start}X-Nul: a\0b\r\n\r\n`,
        `${start} folded: 1\r\n\r\n`,
        'GET /v1/me HTTP/9.9\r\nHost: localhost\r\n\r\n',
        '\x16\x03\x01\x02\x00\x01\x00\x01\xfc',
      ]) {
        const answer = await sendRaw(gateway.url, bytes)
        assertRefused(answer, 400, undefined, JSON.stringify(bytes.slice(-60)))
        assert.equal(answer.headers.connection, 'close')
      }
    })
  })

  it('hostile input without a Host, or with two, is refused', async () => {
    for (const hosts of ['', 'Host: localhost\r\nHost: evil.example\r\n']) {
      const answer = await sendRaw(gateway.url, `GET /v1/catalog HTTP/1.1\r\n${hosts}\r\n`)
      assertRefused(answer, 400, 'VALIDATION_ERROR', hosts)
    }
  })

  it('hostile input with another host in its request target is served like a request to the gateway or refused, and never forwarded', async () => {
    await withoutEffect(async () => {
      for (const bytes of [
        'GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
        'GET //169.254.169.254/v1/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
        'OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      ]) {
        const { status } = await sendRaw(gateway.url, bytes)
        assert.ok(status >= 400 && status < 500, `${bytes}: ${status}`)
      }
    })
  })
})
