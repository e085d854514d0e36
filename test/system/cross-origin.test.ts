import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Account, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'

const PAGE = 'https://app.example.com'
const CALL = '/v1/call/weather/current?latitude=40.7&longitude=-74'

describe('pages of other origins', () => {
  let gateway: Gateway
  let account: Account

  before(async () => {
    gateway = await startGateway({ isInProcess: true, environment: { CORS_ORIGINS: `${PAGE}, http://localhost:5173` } })
    account = await signUp(gateway)
  })
  after(async () => await gateway.stop())

  const ask = (path: string, init: RequestInit & { url?: string } = {}) =>
    fetch((init.url ?? gateway.url) + path, { ...init, headers: { origin: PAGE, ...init.headers } })
  const preflight = (path: string, headers: Record<string, string> = {}) =>
    ask(path, {
      method: 'OPTIONS',
      headers: {
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-api-key,content-type',
        ...headers,
      },
    })
  const originOf = (response: Response) => response.headers.get('access-control-allow-origin')

  it('pages of a named origin make calls with a key, and read answers and refusals with their headers', async () => {
    for (const path of [CALL, '/v1/batch', '/v1/calls/call_1', '/mcp', '/mcp/weather']) {
      const allowed = await preflight(path)
      assert.deepEqual([allowed.status, originOf(allowed)], [204, PAGE], path)
      assert.match(allowed.headers.get('access-control-allow-headers') ?? '', /x-api-key/)
      assert.match(allowed.headers.get('access-control-allow-methods') ?? '', /POST/)
      assert.match(allowed.headers.get('vary') ?? '', /origin/i)
    }
    const answer = await ask(CALL, { headers: { 'x-api-key': account.test } })
    assert.deepEqual([answer.status, originOf(answer)], [200, PAGE])
    assert.match(answer.headers.get('vary') ?? '', /origin/i)
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /RateLimit.*X-Call-Id|X-Call-Id.*RateLimit/)
    const calls = [{ api: 'weather', endpoint: '/current', parameters: { latitude: 40.7, longitude: -74 } }]
    const batch = await ask('/v1/batch', {
      method: 'POST',
      headers: { 'x-api-key': account.test, 'content-type': 'application/json' },
      body: JSON.stringify({ calls }),
    })
    assert.deepEqual([batch.status, originOf(batch)], [200, PAGE])
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const mcp = await ask('/mcp', {
      method: 'POST',
      headers: {
        ...{ 'x-api-key': account.test, 'content-type': 'application/json' },
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(message),
    })
    assert.deepEqual([mcp.status, originOf(mcp)], [200, PAGE])
    for (const response of [await ask(CALL), await ask('/v1/call/none/x', { headers: { 'x-api-key': account.test } })])
      assert.equal(originOf(response), PAGE, `${response.status}`)
  })

  it('pages of other origins cannot use account routes, no answer allows cookies, and the header of the portal is never allowed', async () => {
    const paths = ['/v1/keys', '/v1/me', '/v1/auth/login', '/v1/callx', '/portal/login', '/account', '/forgot']
    for (const path of paths) {
      assert.equal(originOf(await preflight(path)), null, path)
      assert.equal(originOf(await ask(path, { headers: { authorization: `Bearer ${account.token}` } })), null, path)
    }
    const allowed = await preflight(CALL, { 'access-control-request-headers': 'x-api-key, X-Portal-Request' })
    assert.doesNotMatch(allowed.headers.get('access-control-allow-headers') ?? '', /portal/i)
    assert.equal(allowed.headers.get('access-control-allow-credentials'), null)
    const cookie = { cookie: `agw_session=${account.token}`, 'x-portal-request': '1' }
    assert.equal((await ask(CALL, { headers: cookie })).status, 401, 'a cookie is no credential of another origin')
  })

  it('pages of origins that are not named may do nothing, and so may all pages if no origin is named', async () => {
    for (const origin of [
      'https://evil.example',
      'https://app.example.com.evil.example',
      'http://app.example.com',
      'null',
    ]) {
      const response = await preflight(CALL, { origin })
      assert.deepEqual([response.ok, originOf(response)], [false, null], origin)
      assert.equal(originOf(await ask(CALL, { headers: { origin, 'x-api-key': account.test } })), null)
    }
    const off = await gateway.startWeb({ CORS_ORIGINS: '' })
    const response = await ask(CALL, { url: off, headers: { 'x-api-key': account.test } })
    assert.deepEqual([response.status, originOf(response)], [200, null])
    const refused = await ask('/mcp', {
      url: off,
      method: 'POST',
      headers: { 'x-api-key': account.test, 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    })
    assert.equal(refused.status, 403)
  })

  it('pages of other origins can read that they send too many requests, and how long to wait', async () => {
    const url = await gateway.startWeb({ CLIENT_ANONYMOUS_PER_SECOND: '1' })
    const post = (path: string) => ask(path, { url, method: 'POST', headers: { origin: PAGE } })
    const refused = async (path: string) => {
      let response = await post(path)
      while (response.status !== 429) response = await post(path)
      return response
    }
    for (const path of ['/oauth/token', '/oauth/register', '/mcp', CALL]) {
      const response = await refused(path)
      const { headers } = response
      assert.ok(['*', PAGE].includes(originOf(response) ?? ''), path)
      assert.match(headers.get('access-control-expose-headers') ?? '', /Retry-After/)
    }
  })
})
