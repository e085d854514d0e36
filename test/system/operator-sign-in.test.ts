import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import Provider from 'oidc-provider'
import type { Browser } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { send } from '../support/client.ts'
import { type Gateway, reachableAddress, startGateway } from '../support/gateway.ts'

const CLIENT = { client_id: 'gateway', client_secret: 'the-secret-that-the-provider-gave' }

/** Groups of the people at the provider, by the name with which they sign in there. */
const GROUPS: Record<string, string[]> = { ada: ['operators'], eve: ['staff'], mallory: [] }

describe('an operator in a browser', () => {
  let gateway: Gateway
  let browser: Browser | undefined
  let url: string
  let listener: RequestListener = (_request, response) => void response.writeHead(503).end()
  const server = createServer((request, response) => listener(request, response))

  before(async () => {
    browser = await launchBrowser()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    gateway = await startGateway({
      isInProcess: true,
      workers: 0,
      environment: {
        ...{ OIDC_ISSUER: issuer, OIDC_CLIENT_ID: CLIENT.client_id, OIDC_CLIENT_SECRET: CLIENT.client_secret },
        ...{ OIDC_OPERATOR_GROUPS: 'operators', OIDC_VIEWER_GROUPS: 'staff', OPS_PORT: '0' },
        ...{ ...(await reachableAddress()), OIDC_ACCOUNTS: 'on' },
      },
    })
    url = await gateway.startConsole()
    const provider = new Provider(issuer, {
      clients: [{ ...CLIENT, redirect_uris: [url, gateway.url].map((each) => `${each}/login/callback`) }],
      claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: ['preferred_username'] },
      findAccount: (_context, id) => ({
        accountId: id,
        claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: true, groups: GROUPS[id] ?? [] }),
      }),
      cookies: { keys: ['a key of the test'] },
    })
    listener = provider.callback()
  })
  after(async () => {
    await browser?.close()
    await gateway.stop()
    server.closeAllConnections()
    server.close()
  })

  const auditActors = async (): Promise<string[]> => {
    const { body } = await send(gateway, '/v1/operator/audit', { url, token: gateway.environment.OPERATOR_TOKEN ?? '' })
    return Object.values(body as Record<string, unknown>)
      .filter((value) => Array.isArray(value))
      .flat()
      .map((record) => `${Object(record).action} ${Object(record).actor}`)
  }

  it('an operator in a browser signs in at the provider, lands on the page that was wanted, and changes things under a proven name; a viewer does not', async (t) => {
    if (!browser) return t.skip('no browser')
    for (const person of ['ada', 'eve']) {
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(`${url}/queues`)
      await page.click('text=Sign in with 127.0.0.1')
      await page.fill('input[name=login]', person)
      await page.fill('input[name=password]', 'any')
      await page.click('button[type=submit]')
      await page.click('text=Continue')
      await page.waitForURL(`${url}/queues`)
      assert.match((await page.textContent('h1')) ?? '', /Queues/)
      await page.goto(url)
      const status = await page.evaluate(async () => {
        const answer = await fetch('/v1/operator/upstreams/weather/pause', { method: 'POST' })
        return answer.status
      })
      assert.equal(status < 300, person === 'ada', `${person}: ${status}`)
      await context.close()
    }
    const actors = await auditActors()
    assert.ok(actors.includes('upstream.pause ada@example.org (oidc, 127.0.0.1)'), actors.join())
    assert.ok(actors.includes('console.login eve@example.org (oidc, 127.0.0.1)'), actors.join())
    assert.ok(!actors.some((actor) => actor.startsWith('upstream.pause eve')))
  })

  it('an operator in a browser who is not in a group that may use the console reads the reason, and gets no session', async (t) => {
    if (!browser) return t.skip('no browser')
    const context = await browser.newContext()
    t.after(() => context.close())
    const page = await context.newPage()
    await page.goto(`${url}/login/oidc`)
    await page.fill('input[name=login]', 'mallory')
    await page.fill('input[name=password]', 'any')
    await page.click('button[type=submit]')
    await page.click('text=Continue')
    await page.waitForSelector('[role=alert]')
    assert.match((await page.textContent('[role=alert]')) ?? '', /not in a group/)
    assert.equal((await page.goto(url))?.status(), 401)
  })

  it('an operator in a browser has no account before a sign-in to the portal, which makes the account and leads to the requested page', async (t) => {
    if (!browser) return t.skip('no browser')
    const context = await browser.newContext()
    t.after(() => context.close())
    const page = await context.newPage()
    await page.goto(`${gateway.url}/account/settings`)
    await page.click('text=Sign in with 127.0.0.1')
    await page.fill('input[name=login]', 'ada')
    await page.fill('input[name=password]', 'any')
    await page.click('button[type=submit]')
    await page.click('text=Continue')
    await page.waitForURL(`${gateway.url}/account/settings`)
    await page.waitForSelector('text=ada@example.org')
    const cookies = await context.cookies(gateway.url)
    assert.ok(!cookies.some(({ name }) => name === 'agw_sign_in'))
    // The same person signs in again without a word at the provider, and stays logged out without.
    await page.click('[data-logout]')
    await page.waitForURL(`${gateway.url}/`)
    await page.goto(`${gateway.url}/account/keys`)
    await page.click('text=Sign in with 127.0.0.1')
    await page.waitForURL(`${gateway.url}/account/keys`)
    await page.waitForSelector('text=Create')
  })
})
