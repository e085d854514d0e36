import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type Account, send } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'

const BASE_URL = 'https://gateway.test'

/** The header fields with which a proxy that ends TLS describes its client. */
const OVER_TLS = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' }

describe('behind a proxy that speaks HTTPS', () => {
  let gateway: Gateway
  let account: Pick<Account, 'email' | 'password' | 'test'>

  before(async () => {
    gateway = await startGateway({ isInProcess: true, environment: { BASE_URL, TRUST_PROXY: '127.0.0.1' } })
    const person = { email: 'a@example.com', password: 'a long password' }
    const { body } = await send(gateway, '/v1/auth/signup', { headers: OVER_TLS, body: person })
    const made = await send(gateway, '/v1/keys', {
      headers: OVER_TLS,
      token: body.token,
      body: { environment: 'test' },
    })
    account = { ...person, test: made.body.key }
  })
  after(() => gateway.stop())

  it("behind a proxy that speaks HTTPS, an MCP tool's call is made inside, without a redirect", async () => {
    const headers = { ...OVER_TLS, 'x-api-key': account.test }
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StreamableHTTPClientTransport(new URL('/mcp/currency', gateway.url), {
      requestInit: { headers },
    })
    await client.connect(transport as Parameters<Client['connect']>[0])
    const result = await client.callTool({ name: 'currency_latest', arguments: {} })
    assert.equal(result.isError, undefined, JSON.stringify(result))
    await client.close()
  })

  it('behind a proxy that speaks HTTPS, plain HTTP is redirected, the portal and MCP included', async () => {
    for (const path of ['/', '/mcp', '/openapi.json', '/account']) {
      const { status, headers } = await fetch(gateway.url + path, { redirect: 'manual' })
      assert.equal(status, 308, path)
      assert.equal(headers.get('location'), BASE_URL + path)
    }
    const headers = { ...OVER_TLS, 'x-forwarded-proto': 'http, HTTPS' }
    assert.equal((await fetch(`${gateway.url}/openapi.json`, { headers, redirect: 'manual' })).status, 200)
  })

  it("behind a proxy that speaks HTTPS, the portal's cookie is bound to this host and to HTTPS", async () => {
    const { status, headers } = await fetch(`${gateway.url}/portal/login`, {
      method: 'POST',
      headers: { ...OVER_TLS, 'x-portal-request': '1', origin: BASE_URL, 'content-type': 'application/json' },
      body: JSON.stringify({ email: account.email, password: account.password }),
    })
    assert.equal(status, 204)
    const [cookie = '', ...attributes] = (headers.get('set-cookie') ?? '').split('; ')
    assert.match(cookie, /^__Host-agw_session=[^;]+$/)
    assert.deepEqual(attributes.sort(), ['HttpOnly', 'Max-Age=86400', 'Path=/', 'SameSite=Strict', 'Secure'])
    assert.match(headers.get('strict-transport-security') ?? '', /max-age=31536000/)
  })
})
