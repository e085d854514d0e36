import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page, Request, Route } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { signUpIn, visitPortal } from '../support/portal.ts'

/** What a person does with an account in the portal, from the first page to the last. */
describe('the life of an account in the portal', () => {
  let gateway: Gateway
  let mail: MailServer
  let browser: Browser | undefined

  before(async () => {
    mail = await startMailServer()
    gateway = await startGateway({ isInProcess: true, environment: { SMTP_URL: mail.url } })
    browser = await launchBrowser()
  })
  after(async () => {
    await browser?.close()
    await gateway.stop()
    await mail.close()
  })

  const clipboard = async (page: Page) => String(await page.evaluate('navigator.clipboard.readText()'))
  const curlOf = async (page: Page) => (await page.locator('[data-language=curl] code').first().textContent()) ?? ''

  it('the page after a sign-up has a test key in its code, what is seen is what is copied, and a reload leaves the mask', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await page.goto('/signup')
      await page.getByLabel('Email').fill('newcomer@example.com')
      await page.getByLabel('Password').fill('a long enough password')
      await page.getByRole('button', { name: 'Create account' }).click()
      await page.getByText('Your test key').waitFor()
      const seen = await curlOf(page)
      const [testKey = ''] = /agw_test_\w{49}/.exec(seen) ?? []
      assert.notEqual(testKey, '')
      await page.getByRole('button', { name: 'Copy curl' }).first().click()
      await page.getByText('Copied, with your key in it').waitFor()
      assert.equal(await clipboard(page), seen)
      const answer = await fetch(`${gateway.url}/v1/call/weather/current?latitude=40.7&longitude=-74`, {
        headers: { 'x-api-key': testKey },
      })
      assert.equal(answer.status, 200)

      await page.getByRole('button', { name: 'Make a live key' }).click()
      await page.getByText('Your live key').waitFor()
      assert.match(await page.locator('[data-made-key]').innerText(), /^Your live key, [^:]+: agw_live_\w{49}$/)
      assert.match(await curlOf(page), /agw_live_\w{49}/)
      const liveKey = /agw_live_\w{49}/.exec(await curlOf(page))?.[0] ?? ''

      await page.reload()
      const masked = await curlOf(page)
      assert.ok(masked.includes(`agw_live_…${liveKey.slice(-4)}`), masked)
      assert.ok(!(await page.content()).includes(liveKey))
      await page.getByRole('button', { name: 'Copy curl' }).first().click()
      await page.getByText('put your key in place of').waitFor()
      assert.equal(await clipboard(page), masked)
    })
  })

  it('a key is changed and rotated, the password recovered by mail, the data downloaded, and the account deleted', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      const { email, password } = await signUpIn(page, '/account/keys')
      await page.getByRole('button', { name: 'Change First key' }).click()
      await page.getByRole('dialog').getByLabel('Label').fill('Robot')
      await page.getByRole('dialog').getByLabel('Expires').selectOption('30')
      await page.getByRole('dialog').getByLabel('Maximum calls a minute').fill('7')
      await page.getByRole('dialog').getByLabel('APIs that it may call').fill('weather, countries')
      await page.getByRole('dialog').getByLabel('Addresses from which it may be used').fill('127.0.0.9/8 ::1')
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await page.getByText('countries, weather; only from 127.0.0.0/8, ::1; 7 a minute').waitFor()
      await page.getByRole('button', { name: 'Rotate Robot' }).click()
      await page.getByRole('dialog').getByLabel('The old key works').selectOption('3600')
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
      await page.locator('[data-new-key]').waitFor()
      assert.match((await page.locator('[data-new-key]').textContent()) ?? '', /^agw_test_\w{49}$/)
      await page.getByText('Replaced by another key').waitFor()

      await page.goto('/login')
      await page.getByRole('link', { name: 'Forgot your password?' }).click()
      await page.getByLabel('Email').fill(email)
      await page.getByRole('button', { name: 'Mail me a link' }).click()
      await page.getByText('a link is on its way').waitFor()
      const links = () =>
        mail.mails.flatMap(({ to, text }) => (to === email ? (/\/reset\?token=[\w-]+/.exec(text) ?? []) : []))
      await until(() => links().length > 0)
      await page.goto(links()[0] ?? '')
      await page.getByLabel('New password').fill(`new ${password}`)
      await page.getByRole('button', { name: 'Set password' }).click()
      await page.getByRole('link', { name: 'log in', exact: true }).last().click()
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill(`new ${password}`)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByText(email).waitFor()

      await page.getByRole('link', { name: 'Settings' }).click()
      const notices = page.getByLabel('When 80 and 100 % of a month are used')
      assert.equal(await notices.isChecked(), true)
      await notices.uncheck()
      await page.getByText('You no longer get notices').waitFor()
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download my data' }).click(),
      ])
      const exported = JSON.parse(await readFile((await download.path()) ?? '', 'utf8'))
      assert.equal(exported.profile.email, email)
      assert.equal(exported.keys.length, 2)

      const leave = async (given: string) => {
        await page.getByLabel('Your password').fill(given)
        await page.getByRole('button', { name: 'Delete my account' }).click()
        await page.getByRole('dialog').getByRole('button', { name: 'Delete the account' }).click()
      }
      await leave('not the password')
      await page.getByText('The password is wrong').waitFor()
      await leave(`new ${password}`)
      await page.getByText('The account has been deleted').waitFor()
      await page.getByRole('link', { name: 'Log in' }).first().waitFor()
      await page.goto('/login')
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill(`new ${password}`)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByText('Email or password is wrong').waitFor()
    })
  })

  it('a change of a key that the gateway refuses stays in its dialog until it is corrected, and what is wrong there keeps nobody in the dialog', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await signUpIn(page, '/account/keys')
      await page.getByRole('button', { name: 'Change First key' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Label').fill('Robot')
      await dialog.getByLabel('Addresses from which it may be used').fill('nowhere')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByRole('alert').filter({ hasText: 'addresses' }).waitFor()
      assert.equal(await dialog.getByLabel('Label').inputValue(), 'Robot')
      await dialog.getByLabel('Addresses from which it may be used').fill('::1')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await page.getByText('only from ::1').waitFor()
      await page.getByRole('button', { name: 'Change Robot' }).click()
      await dialog.getByLabel('Maximum calls a minute').fill('-1')
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await dialog.waitFor({ state: 'detached' })
    })
  })

  it('a change of a key whose dialog is closed while it is saved shows on the page, and so does its refusal', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await signUpIn(page, '/account/keys')
      for (const [change, addresses, shown] of [
        ['Change First key', '::1', 'only from ::1'],
        ['Change Robot', 'nowhere', 'is not an IPv4 or IPv6 address'],
      ] as const) {
        const arrived = Promise.withResolvers<void>()
        const mayPass = Promise.withResolvers<void>()
        await page.route('**/v1/keys/*', async (route) => {
          arrived.resolve()
          await mayPass.promise
          await route.continue()
        })
        await page.getByRole('button', { name: change }).click()
        const dialog = page.getByRole('dialog')
        await dialog.getByLabel('Label').fill('Robot')
        await dialog.getByLabel('Addresses from which it may be used').fill(addresses)
        await dialog.getByRole('button', { name: 'Save' }).click()
        await arrived.promise
        await page.keyboard.press('Escape')
        await dialog.waitFor({ state: 'detached' })
        mayPass.resolve()
        await page.getByText(shown).waitFor()
        await page.unroute('**/v1/keys/*')
      }
    })
  })

  it('what is typed into a form, and the focus of a keyboard, outlive another action of the page', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await signUpIn(page, '/account/keys')
      await page.getByLabel('Label').fill('Half typed')
      await page.getByText('What it may do').click()
      await page.getByLabel('APIs that it may call').fill('weather')
      await page.getByRole('button', { name: 'Change First key' }).press('Enter')
      await page.getByRole('dialog').getByLabel('Expires').selectOption('30')
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).press('Enter')
      await page.getByText('The key has been changed').waitFor()
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await until(async () => /^Change First key/.test(String(await page.evaluate(FOCUSED))))
      assert.equal(await page.getByLabel('Label').inputValue(), 'Half typed')
      await page.getByRole('button', { name: 'Create key' }).click()
      await page.locator('[data-new-key]').waitFor()
      await page.getByRole('row', { name: 'Half typed' }).getByText('weather', { exact: true }).waitFor()
      assert.equal(await page.getByLabel('Label').inputValue(), '')
      await page.getByRole('button', { name: 'Revoke First key' }).press('Enter')
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).press('Enter')
      await page.getByText('The key has been revoked').waitFor()
      await until(async () => (await page.evaluate('document.activeElement.id')) === 'main')
    })
  })

  it('the page that is requested last is shown, whichever page arrives last', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await page.goto('/')
      const { promise: goOn, resolve: letGoOn } = Promise.withResolvers<void>()
      await page.route('**/agents', async (route) => {
        await goOn
        await route.continue()
      })
      const late = page.waitForRequest('**/agents')
      await page.getByRole('link', { name: 'For agents' }).first().click()
      await late
      await page.getByRole('link', { name: 'Docs' }).first().click()
      await page.waitForURL('**/docs')
      const arrived = page.waitForResponse('**/agents')
      letGoOn()
      await (await arrived).finished()
      await page.evaluate('new Promise((done) => setTimeout(done))')
      assert.equal(new URL(page.url()).pathname, '/docs')
      await page.unroute('**/agents')
    })
  })

  it('a page shows the newest list, whichever list arrives last, and why fields of a form cannot be shown', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await signUpIn(page, '/account/keys')
      const revoke = page.getByRole('button', { name: /^Revoke First key/ })
      await revoke.waitFor()
      const refusal = { code: 'RATE_LIMIT_EXCEEDED', message: 'Too many requests.', hint: '', docs: '' }
      await page.route('**/v1/catalog', (route) => route.fulfill({ status: 429, json: refusal }))
      await page.getByText('What it may do').click()
      await page.getByText('Too many requests.').waitFor()
      await page.unroute('**/v1/catalog')
      await page.getByText('What it may do').click()
      await page.getByText('What it may do').click()
      await page.getByLabel('APIs that it may call').waitFor()
      assert.equal(await page.getByText('Too many requests.').count(), 0)

      const { promise: held, resolve: setHeld } = Promise.withResolvers<Request>()
      const { promise: goOn, resolve: letGoOn } = Promise.withResolvers<void>()
      let isHeld = false
      const holdList = async (route: Route): Promise<void> => {
        if (isHeld || route.request().method() !== 'GET') return await route.fallback()
        isHeld = true
        const response = await route.fetch()
        setHeld(route.request())
        await goOn
        await route.fulfill({ response })
      }
      await page.route('**/v1/keys', holdList)
      await page.getByRole('button', { name: 'Create key' }).click()
      const request = await held
      await revoke.click()
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
      await revoke.waitFor({ state: 'detached' })
      letGoOn()
      await (await request.response())?.finished()
      await page.getByText('Your new key').waitFor()
      await page.evaluate('new Promise((done) => setTimeout(done))')
      assert.equal(await revoke.count(), 0)
      await page.unroute('**/v1/keys', holdList)
    })
  })

  it('an account page follows the log-in of another tab, and a refused form gives the focus back', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page, context) => {
      const first = await signUpIn(page, '/account/settings')
      await page.getByText(first.email).waitFor()
      const other = await context.newPage()
      await other.goto('/account')
      await other.getByText('Log out').click()
      await page.waitForURL('**/login?next=%2Faccount%2Fsettings')
      await page.getByLabel('Email').fill(first.email)
      await page.getByLabel('Password').fill('not the password')
      await page.getByRole('button', { name: 'Log in' }).press('Enter')
      await page.getByText('Email or password is wrong').waitFor()
      await until(async () => (await page.evaluate('document.activeElement.textContent')) === 'Log in')
      await page.getByLabel('Password').fill(first.password)
      await page.getByRole('button', { name: 'Log in' }).press('Enter')
      await page.getByText(first.email).waitFor()
      await other.goto('/signup')
      await other.getByLabel('Email').fill('second@example.com')
      await other.getByLabel('Password').fill('a long enough password')
      await other.getByRole('button', { name: 'Create account' }).click()
      await page.getByText('second@example.com').waitFor()
      // What a sign-in at a provider ends with.
      const loaded = page.waitForEvent('load')
      const signedIn = (await (await other.request.get('/login')).text()).replace(
        /data-view="[^"]*"/,
        'data-view="signed-in"',
      )
      await other.route('**/login/callback', (route) => route.fulfill({ body: signedIn, contentType: 'text/html' }))
      await other.goto('/login/callback')
      await loaded
      await other.close()
    })
  })

  it('a log-in that a page asked for leads back to the page, with its filter or its call', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      const { email, password } = await signUpIn(page)
      for (const path of [
        '/account/calls?status=4xx&from=2026-01-01T00%3A00',
        '/account/calls/call_00000000000000000000000000000000',
      ]) {
        await page.context().clearCookies()
        await page.goto(path)
        await page.getByLabel('Email').fill(email)
        await page.getByLabel('Password').fill(password)
        await page.getByRole('button', { name: 'Log in' }).click()
        await page.waitForURL((url) => url.pathname + url.search === path)
      }
    })
  })
})

const FOCUSED = 'document.activeElement.getAttribute("aria-label")'
