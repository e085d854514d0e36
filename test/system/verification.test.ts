import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { launchBrowser } from '../support/browser.ts'
import { send, signUpThroughApi } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { signUpIn, visitPortal } from '../support/portal.ts'

describe('if there is a mail server', () => {
  let mail: MailServer
  let gateway: Gateway

  before(async () => {
    mail = await startMailServer()
    gateway = await startGateway({
      isInProcess: true,
      workers: 0,
      environment: { SMTP_URL: mail.url, SIGNUP: 'verified' },
    })
  })
  after(async () => {
    await gateway.stop()
    await mail.close()
  })

  const mailsTo = (email: string) => mail.mails.filter(({ to }) => to === email)
  const linkOf = (email: string): URL =>
    new URL(/http:\/\/localhost:3000\/verify\?token=[\w.-]+/.exec(mailsTo(email).at(-1)?.text ?? '')?.[0] ?? 'none:')

  it('if there is a mail server, an address is proven by a person who opens the mailed link, and live calls and keys that are tried need it', async (t) => {
    const account = await signUpThroughApi(gateway)
    await until(() => mailsTo(account.email).length === 1)
    const call = async () =>
      (await send(gateway, '/v1/call/weather/current?latitude=x&longitude=1', { key: account.live })).status
    assert.equal(await call(), 403)
    const status = async () => (await send(gateway, '/v1/auth/verification', { token: account.token })).body
    assert.deepEqual(await status(), { emailVerified: false, liveCallsNeed: 'verification' })
    // A call beyond the plan is refused for the address first, and the quote says the same.
    const beyondPlan = async (): Promise<string[]> => {
      const refusal = await send(gateway, '/v1/call/news/top', { key: account.live })
      const { body } = await send(gateway, '/v1/catalog/news', { key: account.live })
      return [refusal.body.error.code, body.now.limitedBy]
    }
    assert.deepEqual(await beyondPlan(), ['FORBIDDEN', 'account'])
    // If a key is saved, the gateway tries it at the upstream.
    const save = () =>
      send(gateway, '/v1/provider-keys/code-host-user', { method: 'PUT', token: account.token, body: { key: 'k-1' } })
    assert.deepEqual([(await save()).status, (await save()).body.code], [403, 'FORBIDDEN'])
    const link = linkOf(account.email)
    const page = await fetch(`${gateway.url}${link.pathname}${link.search}`)
    assert.match(
      await page.text(),
      /class="wrap narrow">\s+<h1>Verify[\s\S]+<form class="card" method="post" action="\/verify">/,
    )
    // If a program opens the link, it has proven nothing.
    assert.equal(await call(), 403)
    // The node that the link reaches has another clock.
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 48 * 3_600_000 })
    const confirmed = await fetch(`${gateway.url}/verify`, {
      method: 'POST',
      body: new URLSearchParams({ token: link.searchParams.get('token') ?? '' }),
    })
    t.mock.timers.reset()
    assert.equal(confirmed.status, 200)
    assert.equal(await call(), 400, 'the parameters are looked at now')
    assert.equal((await save()).status, 200)
    assert.deepEqual(await status(), { emailVerified: true, liveCallsNeed: null })
    assert.deepEqual(await beyondPlan(), ['PLAN_UPGRADE_REQUIRED', 'plan'])
  })

  it('if there is a mail server, the portal says before the sign-up that a mail comes, and sends it again', async (t) => {
    const browser = await launchBrowser()
    try {
      await visitPortal(t, { gateway, browser }, async (page) => {
        await page.goto('/signup')
        await page.getByText('You get a mail with a link that verifies your address').waitFor()
        const { email } = await signUpIn(page)
        await page.getByText('Until then live calls are refused').waitFor()
        await page.getByRole('button', { name: 'Send it again' }).click()
        await page.getByText('The mail is on its way').waitFor()
        await until(() => mailsTo(email).length === 2)
      })
    } finally {
      await browser?.close()
    }
  })

  it('if sign-up is closed, pages and guide name whom to ask in place of a form that fails', async () => {
    const closed = await gateway.startWeb({ SIGNUP: 'closed', CONTACT: 'ops@example.org' })
    const read = async (url: string, path: string) => await (await fetch(url + path)).text()
    const page = await read(closed, '/signup')
    assert.doesNotMatch(page, /<form/)
    assert.match(page, /Sign-up is closed\. Ask the operator to open it: <a href="mailto:ops@example.org"/)
    assert.match(await read(closed, '/'), /Sign-up is closed. Ask the operator of this gateway to open it/)
    assert.match(await read(closed, '/login'), /No account yet\? <a href="\/signup">Sign-up is closed<\/a>/)
    assert.match(
      await read(closed, '/apis/weather'),
      /<a href="\/login\?next=\/apis\/weather">Log in<\/a> for live data/,
    )
    assert.match(await read(gateway.url, '/apis/weather'), />Sign up<\/a> or <a [^>]+>log in<\/a> for live data/)
    assert.match(
      await read(closed, '/docs/guides/quickstart.md'),
      /Sign-up is closed. If you have an account, \[log in\]\(\/login\). If not, ask the operator of this gateway/,
    )
    assert.match(await read(closed, '/account'), /To change plan, contact <a href="mailto:ops@example.org"/)
    // Without CONTACT the project's own address stands for nobody who could help.
    const account = await read(gateway.url, '/account')
    assert.match(account, /To change plan, contact the operator of this gateway/)
    assert.doesNotMatch(account, /github\.com/)
  })

  it('if sign-up is closed, no page offers it, and the log-in still works', async () => {
    const closed = await gateway.startWeb({ SIGNUP: 'closed' })
    const read = async (url: string, path: string) =>
      await (await fetch(url + path, { headers: { accept: 'text/html' } })).text()
    const headerOf = (page: string) => /<header class="top">.*<\/header>/s.exec(page)?.[0] ?? ''
    for (const path of ['/', '/login', '/signup', '/agents', '/apis/weather', '/docs', '/docs/errors', '/nowhere']) {
      const [open, header] = [headerOf(await read(gateway.url, path)), headerOf(await read(closed, path))]
      assert.match(open, /href="\/login">Log in<\/a><a [^>]*href="\/signup">Sign up</, path)
      assert.match(header, /href="\/login">Log in<\/a><\/div>/, path)
      assert.doesNotMatch(header, /signup/, path)
    }
    assert.match(await read(gateway.url, '/'), /href="\/signup">Get a key</)
    const home = await read(closed, '/')
    assert.doesNotMatch(home, /signup/)
    assert.match(home, /href="\/login\?next=\/account\/keys">Log in</)
  })

  it('if there is a mail server, the link is sent again three times an hour, and a forged or changed token proves nothing', async () => {
    const account = await signUpThroughApi(gateway)
    const again = () => send(gateway, '/v1/auth/verification', { method: 'POST', token: account.token })
    const statuses = []
    for (let count = 0; count < 4; count += 1) statuses.push((await again()).status)
    assert.deepEqual(statuses, [204, 204, 204, 429])
    await until(() => mailsTo(account.email).length === 4)
    const token = linkOf(account.email).searchParams.get('token') ?? ''
    const verify = (value: string) => send(gateway, '/v1/auth/verify', { body: { token: value } })
    for (const bad of [account.token, `${token}x`, token.replace(/\.[^.]+$/, '.AAAA')]) {
      const { status, body } = await verify(bad)
      assert.deepEqual([status, body.code], [401, 'INVALID_TOKEN'])
    }
    assert.equal((await verify(token)).status, 204)
  })

  it('if the mail server accepts no mail for now, the answer states this, and the request does not count against the mails of the hour', async () => {
    const account = await signUpThroughApi(gateway)
    await until(() => mailsTo(account.email).length === 1)
    const again = () => send(gateway, '/v1/auth/verification', { method: 'POST', token: account.token })
    mail.recipientAnswer = '451 later'
    for (let count = 0; count < 5; count += 1) {
      const { status, body } = await again()
      assert.deepEqual([status, body.code], [503, 'DEPENDENCY_UNAVAILABLE'])
      assert.equal(body.message, 'The mail server did not accept the mail.')
      assert.match(body.hint, /^Try again in a minute, or ask the operator to approve the account/)
    }
    // If the mail server refuses a mail for good, the gateway does not try for ever.
    mail.recipientAnswer = '550 no such mailbox'
    const refused = await again()
    assert.deepEqual([refused.status, refused.body.message], [503, 'The mail server refuses mail to your address.'])
    assert.doesNotMatch(refused.body.hint, /Try again/)
    mail.recipientAnswer = '250 test'
    const statuses = []
    for (let count = 0; count < 3; count += 1) statuses.push((await again()).status)
    assert.deepEqual(statuses, [204, 204, 429])
  })

  it('if the mails of an hour were sent, further requests get an answer about these mails and not about the mail server', async () => {
    const account = await signUpThroughApi(gateway)
    const hints = []
    for (let count = 0; count < 24; count += 1) {
      const { body } = await send(gateway, '/v1/auth/verification', { method: 'POST', token: account.token })
      if (body.hint) hints.push(body.hint.replace(/ \w+=.*/, ''))
    }
    assert.equal(hints.length, 21)
    assert.deepEqual(new Set(hints), new Set(['Use the link of a mail that has arrived, or wait.']))
  })

  it('if no mail server answers, or there is none, the answer says which, and names an operator only if one is needed', async () => {
    const account = await signUpThroughApi(gateway)
    const ask = async (environment: Record<string, string>) => {
      const url = await gateway.startWeb({ SIGNUP: 'open', ...environment })
      return await send(gateway, '/v1/auth/verification', { method: 'POST', token: account.token, url })
    }
    const silent = await ask({ SMTP_URL: 'smtp://127.0.0.1:9' })
    assert.deepEqual([silent.status, silent.body.message], [503, 'The mail server does not answer.'])
    assert.doesNotMatch(silent.body.hint, /operator/)
    const none = await ask({ SMTP_URL: '' })
    assert.deepEqual([none.status, none.body.message], [403, 'This gateway sends no mail.'])
    assert.doesNotMatch(none.body.hint, /operator/)
    const waiting = await ask({ SMTP_URL: '', SIGNUP: 'approval' })
    assert.match(waiting.body.hint, /^Ask the operator to approve the account/)
  })

  it('if there is a mail server, only accounts with a proven address can be added to a team', async () => {
    const [owner, colleague] = [await signUpThroughApi(gateway), await signUpThroughApi(gateway)]
    const { team } = (await send(gateway, '/v1/teams', { token: owner.token, body: { name: 'Team' } })).body
    const add = () =>
      send(gateway, `/v1/teams/${team.id}/members`, { token: owner.token, body: { email: colleague.email } })
    const refused = await add()
    assert.deepEqual([refused.status, refused.body.code], [404, 'USER_NOT_FOUND'])
    await until(() => mailsTo(colleague.email).length === 1)
    const token = linkOf(colleague.email).searchParams.get('token') ?? ''
    await send(gateway, '/v1/auth/verify', { body: { token } })
    const added = await add()
    assert.deepEqual([added.status, added.body.member.emailVerified], [201, true])
  })
})
