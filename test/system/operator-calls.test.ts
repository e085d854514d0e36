import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { operate } from '../../src/operator/commands.ts'
import { checkLook } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { type Account, createKey, send, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'

describe('operators who look for a call or an account', () => {
  let gateway: Gateway
  let ops = ''
  let account: Account

  before(async () => {
    gateway = await startGateway({
      isInProcess: true,
      environment: { OPS_PORT: '0', PLAN_LIMITS: '{"Free":{"perMinute":1000}}' },
    })
    ops = await gateway.startConsole()
    account = await signUp(gateway)
  })
  after(() => gateway.stop())

  const operator = (path: string, options: { method?: string; headers?: Record<string, string> } = {}) =>
    send(gateway, `/v1/operator${path}`, { ...options, token: gateway.environment.OPERATOR_TOKEN ?? '', url: ops })
  const cli = (...args: string[]) => operate(['--url', ops, ...args], gateway.environment)

  /** A call that failed, once the log has it. */
  async function failedCall(): Promise<{ callId: string; requestId: string }> {
    const headers = { 'x-gateway-scenario': 'upstream-500' }
    const answer = await send(gateway, '/v1/call/trivia/questions', { key: account.test, headers })
    const callId = answer.headers.get('x-call-id') ?? ''
    await until(async () => (await operator(`/calls/${callId}`)).status === 200, 10_000)
    return { callId, requestId: answer.headers.get('x-request-id') ?? '' }
  }

  it('a call of any account is found by either id, in the API and by the command, which says when there is none', async () => {
    const { callId, requestId } = await failedCall()
    const { body } = await operator(`/calls/${callId}`)
    assert.equal(body.calls[0].account.email, account.email)
    assert.deepEqual((await operator(`/calls/${requestId}`)).body, body)
    const { text } = await cli('call', requestId)
    assert.match(text, new RegExp(`Call +${callId}`))
    assert.match(text, /Answer +502 UPSTREAM_ERROR/)
    assert.match(text, /Account .*@example\.com/)
    await assert.rejects(
      cli('call', `call_${'0'.repeat(32)}`),
      /The log has no call with this X-Call-Id or X-Request-Id/,
    )
    assert.equal((await operator('/calls/nonsense')).status, 404)
  })

  it('calls are listed by account and filter, page by page', async () => {
    await failedCall()
    const other = await signUp(gateway)
    const list = (query: string) => operator(`/calls?${query}`)
    const all = (await list(`account=${account.id}&status=5xx&api=trivia`)).body.calls
    assert.ok(all.length >= 2)
    const first = await list(`account=${account.id}&status=5xx&api=trivia&limit=1`)
    const [, next = ''] = /<\/v1\/operator(\/calls\?[^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '') ?? []
    assert.deepEqual((await operator(next)).body.calls, [all[1]])
    assert.deepEqual((await list(`account=${other.id}`)).body.calls, [])
    assert.equal((await list('account=none')).status, 404)
    assert.deepEqual((await list(`account=${account.id.toUpperCase()}&status=5xx&api=trivia`)).body.calls, all)
  })

  it('an account shows its APIs, failures, keys and connections, and an API its accounts', async () => {
    const { callId } = await failedCall()
    await until(async () => (await operator(`/users/${account.id}`)).body.apis.length > 0, 10_000)
    const { body } = await operator(`/users/${account.id}`)
    assert.equal(body.user.email, account.email)
    assert.equal(body.failures[0].id, callId)
    assert.equal(body.keys.length, 2)
    assert.equal(body.apis[0].api, 'trivia')
    assert.ok(body.apis[0].calls >= body.apis[0].failed && body.apis[0].failed >= 1)
    const { accounts } = (await operator('/upstreams/trivia/accounts')).body
    assert.equal(accounts[0].email, account.email)
    assert.equal((await operator('/upstreams/none/accounts')).status, 404)
    assert.equal((await operator(`/users/${randomUUID()}`)).status, 404)
    const { text } = await cli('account', account.email)
    assert.match(text, /trivia +\d+ +0 +\d+/)
    assert.match(text, new RegExp(callId))
  })

  it('a key that an operator revokes is refused by the next request, and the audit log says who did it', async () => {
    const { key, id } = await createKey(gateway, account.token, 'test')
    const call = () => send(gateway, '/v1/call/trivia/questions', { key })
    assert.equal((await call()).status, 200)
    const { text } = await cli('revoke-key', id.toUpperCase())
    assert.match(text, /is revoked/)
    assert.equal((await call()).status, 401)
    const [record] = (await operator('/audit?limit=1')).body.records
    assert.deepEqual([record.action, record.subject, record.before.accountId], ['key.revoke', id, account.id])
    const records = `/audit?action=key&subject=${id.toUpperCase()}`
    assert.equal((await operator(records)).body.records.length, 1, 'an id in capitals')
    assert.equal((await operator(`/keys/${id}`, { method: 'DELETE' })).status, 404)
    assert.equal((await operator('/keys/none', { method: 'DELETE' })).status, 404)
  })

  it('the search box of every page leads to a call and to an account, whose key is revoked after a question', async (t) => {
    const browser = await launchBrowser()
    if (!browser) return t.skip('there is no Chromium, and it may not be installed here')
    t.after(() => browser.close())
    const { callId, requestId } = await failedCall()
    const { key, id } = await createKey(gateway, account.token, 'test')
    const context = await browser.newContext({ baseURL: ops })
    const page = await context.newPage()
    await page.goto('/')
    await page.getByLabel(/token/i).fill(gateway.environment.OPERATOR_TOKEN ?? '')
    await page.getByRole('button', { name: /log in/i }).click()
    await page.locator('#apis').waitFor()

    const find = async (text: string) => {
      await page.getByRole('searchbox', { name: /Find a call/ }).fill(text)
      await page.keyboard.press('Enter')
    }
    await find(requestId)
    await page.getByRole('heading', { name: `Call ${callId}` }).waitFor()
    await page.getByRole('img', { name: /^Where the time went: .+ ms/ }).waitFor()
    await checkLook(page, 'operator-call')
    await page.getByRole('link', { name: account.email }).click()
    await page.getByRole('heading', { name: account.email }).waitFor()
    await page.getByText('UPSTREAM_ERROR').first().waitFor()
    await checkLook(page, 'operator-account')

    const row = page.getByRole('row', { name: new RegExp(id) })
    await row.getByText('Revoke', { exact: true }).click()
    await row.getByRole('button', { name: 'Revoke it now' }).click()
    await page.getByRole('row', { name: new RegExp(id) }).waitFor({ state: 'detached' })
    assert.equal((await send(gateway, '/v1/call/trivia/questions', { key })).status, 401)
    const other = await signUp(gateway)
    const called = async () => (await send(gateway, '/v1/call/trivia/questions', { key: other.test })).status
    await find(other.email)
    await page.getByText('Disable the account').click()
    await page.getByRole('button', { name: 'Disable it now' }).click()
    await page.getByRole('button', { name: 'Enable the account' }).waitFor()
    assert.equal(await called(), 401)
    await page.getByRole('button', { name: 'Enable the account' }).click()
    await page.getByText('Disable the account').waitFor()
    assert.equal(await called(), 200)

    await page.getByRole('navigation').getByRole('link', { name: 'Accounts' }).click()
    await page.getByRole('link', { name: account.email }).waitFor()
    await checkLook(page, 'operator-accounts')
    await page.getByLabel('Address or id').fill(other.email.toUpperCase())
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('link', { name: account.email }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: other.email }).click()
    await page.getByLabel('Plan').selectOption('pro')
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByText('Pro (pro)').first().waitFor()
    await page.getByRole('button', { name: 'Approve the account' }).click()
    await page.getByRole('button', { name: 'Withdraw the approval' }).waitFor()
    const [listed] = (await operator(`/users?email=${other.email}`)).body.users
    assert.deepEqual([listed.tier, listed.approved, listed.disabled], ['pro', true, false])

    // The next pages show the calls of this day, and midnight may have been since the call before.
    await failedCall()
    await find(account.email)
    await page.getByRole('heading', { name: account.email }).waitFor()
    await page.getByRole('link', { name: 'trivia' }).first().click()
    await page.getByRole('heading', { name: /Accounts of trivia/ }).waitFor()
    await page.getByRole('link', { name: account.email }).waitFor()
    await checkLook(page, 'operator-api-accounts')
    await page.getByRole('navigation').getByRole('link', { name: 'Calls' }).click()
    await page.getByLabel('API').fill('trivia')
    await page.getByLabel('Answers').selectOption('5xx')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/status=5xx/)
    await page.getByText('UPSTREAM_ERROR').first().waitFor()
    assert.equal(await page.getByText('200', { exact: true }).count(), 0)
    await checkLook(page, 'operator-calls')
    await find(account.email.toUpperCase())
    await page.getByRole('heading', { name: account.email }).waitFor()
    await find('<b>nobody</b>')
    await page.getByText('“<b>nobody</b>”').waitFor()
    await checkLook(page, 'operator-nothing')
  })

  it('a page of another origin cannot revoke a key, and nobody sees a call without a log-in', async () => {
    const { callId } = await failedCall()
    const { id } = await createKey(gateway, account.token, 'test')
    const app = gateway.apps.get(ops) ?? assert.fail()
    const { host } = new URL(ops)
    assert.equal((await operator('/calls?code=%00')).status, 400)
    for (const url of [`/calls/${callId}`, `/accounts/${account.id}`, `/find?q=${callId}`]) {
      const { body } = await app.inject({ url, headers: { host, accept: 'text/html' } })
      assert.ok(!body.includes(account.email) && !body.includes('UPSTREAM_ERROR'), url)
    }
    const form = { host, 'content-type': 'application/x-www-form-urlencoded' }
    const login = await app.inject({
      ...{ method: 'POST', url: '/login', headers: { ...form, 'sec-fetch-site': 'same-origin' } },
      payload: new URLSearchParams({ token: gateway.environment.OPERATOR_TOKEN ?? '' }).toString(),
    })
    const cookie = String(login.headers['set-cookie']).split(';', 1)[0] ?? ''
    const revoke = (site: string) =>
      app.inject({
        ...{
          method: 'POST',
          url: `/accounts/${account.id.toUpperCase()}/keys/${id.toUpperCase()}/revoke`,
          payload: '',
        },
        headers: { ...form, cookie, 'sec-fetch-site': site },
      })
    assert.equal((await revoke('cross-site')).statusCode, 403)
    assert.equal((await revoke('same-origin')).statusCode, 303)
    // An address names an account in the address of its page and in the filter too.
    const read = (url: string) => app.inject({ url, headers: { host, cookie } })
    const address = encodeURIComponent(account.email.toUpperCase())
    assert.equal((await read(`/accounts/${address}`)).headers.location, `/accounts/${account.id}`)
    assert.ok((await read(`/calls?account=${address}`)).body.includes(callId))
    assert.equal((await read('/calls?account=nobody@example.com')).statusCode, 404)
    for (const text of ['a%00@b', '%EF%BF%BF@b'])
      assert.equal((await app.inject({ url: `/find?q=${text}`, headers: { host, cookie } })).statusCode, 400, text)
  })
})
