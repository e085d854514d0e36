import assert from 'node:assert/strict'
import { once } from 'node:events'
import { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { after, before, describe, it, mock } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { listRoutes, type RegisteredRoute } from '../../src/http/server/method-not-allowed.ts'
import { send, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'

/**
 * Most bytes that a request may build for itself alone, for each unit that it takes of its address.
 */
const BUILT_BYTES_MAX = 16 * 1024

/** Values that lead to the largest answer of a route. */
const VALUES: Record<string, string> = { ':slug': 'weather', ':slug.md': 'weather.md', ':name': 'quickstart' }

/**
 * Answers whose size depends on words of the caller, besides the plain answer of the same route.
 */
const CHOSEN = [
  ['/', '/?q=weather'],
  ['/', '/?health=Healthy'],
  ['/v1/catalog', '/v1/catalog?q=a'],
  ['/docs', '/docs/guides/nothing-like-this'],
] as const

describe('a request', () => {
  let gateway: Gateway
  let app: FastifyInstance

  before(async () => {
    const environment = {
      SECURITY_CONTACT: 'mailto:a@example.com',
      ACCOUNT_REQUESTS_PER_SECOND: '2',
      UNKNOWN_KEYS_PER_MINUTE: '5',
    }
    gateway = await startGateway({ isInProcess: true, environment })
    app = gateway.apps.get(gateway.url) ?? assert.fail()
  })
  after(() => gateway.stop())

  /** The body that the gateway gave to Node for an answer: the object itself, not a copy. */
  async function payloadOf(path: string): Promise<unknown> {
    const ends = mock.method(ServerResponse.prototype, 'end')
    try {
      await (
        await fetch(gateway.url + path, {
          headers: { accept: 'text/html', 'accept-encoding': 'identity' },
          redirect: 'manual',
        })
      ).arrayBuffer()
      return ends.mock.calls.at(-1)?.arguments[0]
    } finally {
      ends.mock.restore()
    }
  }

  it('a request without an account builds little for each unit, or all readers share the same bytes', async () => {
    const routes = listRoutes(app).filter(
      ({ method, options }) => method === 'GET' && options.config?.guard === undefined,
    )
    const plain = routes.map((route): [RegisteredRoute, string] => [route, addressOf(route)])
    const chosen = CHOSEN.map(([url, path]): [RegisteredRoute, string] => [
      routes.find((route) => route.url === url) ?? assert.fail(url),
      path,
    ])
    assert.ok(plain.length > 30)
    const wrong: string[] = []
    for (const [{ options }, path] of [...plain, ...chosen]) {
      const [first, second] = [await payloadOf(path), await payloadOf(path)]
      const units = options.config?.anonymousUnits ?? 1
      const isShared = first === second && Buffer.isBuffer(first)
      const bytes = Buffer.isBuffer(second) || typeof second === 'string' ? Buffer.byteLength(second) : 0
      if (!isShared && bytes > units * BUILT_BYTES_MAX) wrong.push(`${path} builds ${bytes} bytes for ${units} units`)
    }
    assert.deepEqual(wrong, [])
  })

  it('a request may have a body of at most 16 KiB, unless its route allows more', () => {
    assert.equal(app.initialConfig.bodyLimit, 16 * 1024)
    const larger = listRoutes(app).filter(({ options }) => (options.bodyLimit ?? 0) > 16 * 1024)
    assert.deepEqual(
      new Set(larger.map(({ url, options }) => `${url} ${(options.bodyLimit ?? 0) / 1024}`)),
      new Set(['/v1/call/* 64', '/v1/batch 512', '/mcp 512', '/mcp/:slug 512']),
    )
  })

  it('a request without a credential is refused before its body arrives, on every route that asks for a credential', async () => {
    const guarded = listRoutes(app).filter(
      ({ method, options }) => ['POST', 'PUT', 'PATCH'].includes(method) && options.config?.guard !== undefined,
    )
    assert.ok(guarded.length > 15)
    for (const { method, url } of guarded) {
      const path = addressOf({ url })
      for (const credential of ['', 'Authorization: Bearer agw_live_none\r\n']) {
        const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\n${credential}Content-Type: application/json\r\nContent-Length: 2000\r\n\r\n`
        assert.match(await firstLine(head), /^HTTP\/1\.1 401 /, `${method} ${path}`)
      }
    }
    assert.match(await firstLine('POST /portal/logout HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n'), / 403 /)
  })

  it('a request that is refused as a call costs its account one, and each 64 KiB of a body another', async () => {
    const [account, other] = [await signUp(gateway), await signUp(gateway)]
    const refused = () => send(gateway, '/v1/call/weather/current', { key: account.test, body: { latitude: 'none' } })
    const answers = []
    do answers.push(...(await Promise.all(Array.from({ length: 10 }, refused))))
    while (!answers.some(({ status }) => status === 429) && answers.length < 500)
    const { body, headers } = answers.find(({ status }) => status === 429) ?? assert.fail()
    assert.equal(body.error.code, 'RATE_LIMIT_EXCEEDED')
    assert.match(body.error.message, /refused/)
    assert.ok(Number(headers.get('retry-after')) >= 1)
    assert.equal((await send(gateway, '/v1/call/trivia/questions', { key: other.test })).status, 200)

    // Of the four that there are at first, and two more each second, a body of 200 KB takes four.
    const calls = [{ api: 'trivia', endpoint: '/questions', parameters: { note: 'x'.repeat(200_000) } }]
    const batch = (body: object) =>
      send(gateway, '/v1/batch', { key: other.test, body, headers: { accept: 'application/json' } })
    const startedAt = performance.now()
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => batch({ calls })))).map(({ status }) => status)
    const seconds = (performance.now() - startedAt) / 1_000
    const served = statuses.filter((status) => status === 200).length
    assert.ok(served >= 1 && served * 4 <= 4 + 2 * seconds, `${served} in ${seconds} s`)
    assert.equal(statuses.filter((status) => status === 429).length, 8 - served)
  })

  it('a log-out on a page counts for the address that sent it, so that requests from other addresses cannot prevent it', async () => {
    const [thief, person] = [await signUp(gateway), await signUp(gateway)]
    const leave = async (token: string, remoteAddress: string) => {
      const headers = { cookie: `agw_session=${token}`, 'x-portal-request': '1' }
      const { statusCode } = await app.inject({ method: 'POST', url: '/portal/logout', headers, remoteAddress })
      assert.equal(statusCode, 204)
    }
    await leave(thief.token, '198.51.100.7')
    for (let count = 0; count < 6; count += 1) await leave(thief.token, '198.51.100.7')
    // The session is new to this node.
    const { token } = (await send(gateway, '/v1/auth/login', { body: person })).body
    await leave(token, '198.51.100.8')
    const headers = { authorization: `Bearer ${token}` }
    assert.equal((await app.inject({ url: '/v1/me', headers, remoteAddress: '198.51.100.9' })).statusCode, 401)
  })

  it('a request of a session that has ended counts as one with an unknown key, and leaves the account its requests', async () => {
    const [account, other] = [await signUp(gateway), await signUp(gateway)]
    const { token } = account
    const checkServed = async (): Promise<void> => {
      assert.equal((await send(gateway, '/v1/me', { token: other.token })).status, 200)
      assert.equal((await send(gateway, '/v1/call/trivia/questions', { key: account.test })).status, 200)
    }
    await checkServed()
    assert.equal((await send(gateway, '/v1/auth/logout', { method: 'POST', token })).status, 204)
    const statuses = []
    for (const path of Array.from({ length: 6 }, () => ['/v1/me', '/v1/calls/x']).flat())
      statuses.push((await send(gateway, path, { token })).status)
    // A node that knew the session finds out without a count. A look-up is due again every 12 s.
    assert.deepEqual(statuses.slice(0, 5), [401, 401, 401, 401, 401])
    assert.ok(statuses.includes(429), String(statuses))
    await checkServed()
  })

  /** The status line that answers a head if its body never comes. */
  async function firstLine(head: string): Promise<string> {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    try {
      socket.write(head)
      const [data] = await once(socket, 'data', { signal: AbortSignal.timeout(10_000) })
      return String(data).split('\r\n', 1)[0] ?? ''
    } finally {
      socket.destroy()
    }
  }
})

function addressOf({ url }: Pick<RegisteredRoute, 'url'>): string {
  return url
    .split('/')
    .map((part) => VALUES[part] ?? (part.startsWith(':') ? 'x' : part === '*' ? 'portal/assets/app.js' : part))
    .join('/')
}
