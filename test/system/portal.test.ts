import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { loadUpstreams } from '../../src/catalog/catalog.ts'
import { launchBrowser } from '../support/browser.ts'
import { send, signUp, sql } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { signUpByForm, signUpIn, visitPortal } from '../support/portal.ts'
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.ts'

/** Connections to this port are refused. */
const NOTHING_LISTENS = 'http://127.0.0.1:9'

describe('the portal', () => {
  let gateway: Gateway
  let upstream: UpstreamServer
  let browser: Browser | undefined

  before(async () => {
    upstream = await startUpstreamServer()
    gateway = await startGateway({
      isInProcess: true,
      environment: { ...upstream.environment('geocoding'), UPSTREAM_NEWS_URL: NOTHING_LISTENS },
    })
    browser = await launchBrowser()
  })
  after(async () => {
    await browser?.close()
    await gateway.stop()
    await upstream.close()
  })

  const withPage = (t: TestContext, use: (page: Page, context: BrowserContext) => Promise<void>) =>
    visitPortal(t, { gateway, browser }, use)

  it('the portal takes a newcomer from sign-up over a key to an answer, and refuses the key once it is revoked', async (t) => {
    await withPage(t, async (page) => {
      await signUpByForm(page)
      await page.getByRole('link', { name: 'API keys' }).click()
      await page.getByRole('button', { name: /^Revoke First key agw_test_….{4}$/ }).waitFor()
      assert.equal(await page.getByRole('button', { name: /^Revoke/ }).count(), 1)
      await page.getByLabel('Label').fill('by hand')
      await page.getByRole('button', { name: 'Create key' }).click()
      const key = (await page.locator('[data-new-key]').textContent()) ?? ''
      assert.match(key, /^agw_test_/)
      await page.getByRole('button', { name: 'Copy key' }).click()
      await page.getByText('Key copied').waitFor()
      assert.equal(await page.evaluate('navigator.clipboard.readText()'), key)

      await page.getByRole('link', { name: 'try the first call' }).click()
      await page.getByLabel('An API key').check()
      assert.equal(await page.locator('[data-key]').inputValue(), key)
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText(/200 in \d/).waitFor()
      await page.getByText('Test data', { exact: true }).last().waitFor()
      assert.match((await page.locator('[data-answer]').textContent()) ?? '', /"temperature_c": 15.3/)
      await page.getByRole('button', { name: 'Copy curl' }).click()
      await page.getByText('Copied, with your key in it').waitFor()
      assert.ok(String(await page.evaluate('navigator.clipboard.readText()')).includes(key))

      await page.getByRole('link', { name: 'Account' }).click()
      await page.getByRole('link', { name: 'API keys' }).click()
      assert.equal(await page.locator('[data-new-key]').count(), 0)
      await page.getByRole('button', { name: 'Revoke by hand' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
      await page.getByText('The key has been revoked').waitFor()

      await page.getByRole('link', { name: 'APIs', exact: true }).click()
      await page.getByRole('link', { name: 'Weather' }).click()
      await page.getByLabel('An API key').check()
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText(/401 in \d/).waitFor()
      await page.getByText('INVALID_API_KEY').first().waitFor()
    })
  })

  it('the page of an API answers a visitor without an account with one click, and the gateway gets no call', async (t) => {
    await withPage(t, async (page) => {
      const calls: string[] = []
      const onRequest = (request: { url: () => string }) => {
        if (request.url().includes('/v1/')) calls.push(request.url())
      }
      page.on('request', onRequest)
      await page.goto('/apis/weather')
      assert.match((await page.locator('[data-language=curl]').textContent()) ?? '', /curl -H 'X-Api-Key/)
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText('This is the recorded answer. Log in for live data.').waitFor()
      const answer = page.locator('[data-answer]')
      assert.match((await answer.textContent()) ?? '', /"temperature_c": 15.3/)
      await page.getByLabel('latitude').fill('10')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText('Recorded example, not for these values').waitFor()
      assert.deepEqual(calls, [])
      page.off('request', onRequest)

      // Who types a key sends with it, and test data are there again afterwards.
      await page.locator('[data-key]').fill('agw_test_unknown')
      assert.ok(await page.getByLabel('An API key').isChecked())
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText('INVALID_API_KEY').first().waitFor()
      await page.getByLabel('Test data').check()
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText('Recorded example, not for these values').waitFor()
      assert.match((await answer.textContent()) ?? '', /"temperature_c": 15.3/)
    })
  })

  it('the portal keeps the log-in over a reload and ends it on log-out, on the server too', async (t) => {
    await withPage(t, async (page, context) => {
      const { email, password } = await signUpIn(page)
      await page.reload()
      await page.getByText(email).waitFor()
      const [cookie] = await context.cookies()
      assert.equal(cookie?.httpOnly, true)
      assert.equal(cookie?.sameSite, 'Strict')
      assert.equal(await page.evaluate('document.cookie'), '')
      const refusal = { code: 'RATE_LIMIT_EXCEEDED', message: 'Too many requests.', hint: '', docs: '' }
      await page.route('**/portal/logout', (route) => route.fulfill({ status: 429, json: refusal }))
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByText('You are still logged in. Too many requests.').waitFor()
      await page.unroute('**/portal/logout')
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByRole('link', { name: 'Log in' }).waitFor()
      assert.deepEqual(await context.cookies(), [])

      await page.goto('/account/keys')
      await page.getByRole('button', { name: 'Log in' }).waitFor()
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill('wrong password')
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByText('Email or password is wrong').waitFor()
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByRole('button', { name: 'Create key' }).waitFor()
    })
  })

  it('the portal finds APIs in everyday words, and keeps what is chosen in an address that can be shared', async (t) => {
    await withPage(t, async (page) => {
      await page.goto('/')
      const shown = () => page.locator('[data-cards] > li:visible').count()
      const first = () => page.locator('[data-cards] > li:visible h3').first().textContent()
      assert.equal(await shown(), (await loadUpstreams()).size)
      await page.getByLabel('Search').fill('exchange rate')
      await page.getByText(/^\d of \d+ APIs$/).waitFor()
      assert.equal(await first(), 'Currency rates')
      await page.getByLabel('Search').fill('do I need an umbrella')
      await page.locator('[data-cards] > li:visible h3').getByText('Weather').waitFor()
      await page.getByText('1 of 28 APIs').waitFor()
      await page.getByLabel('Search').fill('qqqq')
      await page.getByText('No API matches “qqqq”.').waitFor()
      await page.getByRole('link', { name: 'Show all' }).click()
      await page.locator('[data-slug=weather]').waitFor()
      await page.getByLabel('Category').selectOption('sports')
      assert.equal(await shown(), 1)
      assert.match(page.url(), /\/\?category=sports$/)
      await page.getByLabel('Health').selectOption('Down')
      assert.equal(await shown(), 0)

      await page.goto('/?q=weahter&category=weather')
      assert.equal(await first(), 'Weather')
      assert.equal(await page.getByLabel('Search').inputValue(), 'weahter')
      assert.ok((await shown()) < 5)
    })
  })

  it('the portal goes back to where the visitor was in the catalog, with the search as it was', async (t) => {
    await withPage(t, async (page) => {
      await page.goto('/')
      await page.getByLabel('Category').selectOption('finance')
      await page.evaluate('scrollTo(0, 700)')
      const before = await page.evaluate('scrollY')
      assert.ok(Number(before) > 300)
      await page.getByRole('link', { name: 'Market quotes' }).click()
      await page.getByRole('heading', { name: 'Market quotes' }).waitFor()
      await until(async () => (await page.evaluate('scrollY')) === 0)
      await page.goBack()
      await page.getByRole('heading', { name: 'Catalog' }).waitFor()
      await until(async () => (await page.evaluate('scrollY')) === before)
      assert.equal(await page.getByLabel('Category').inputValue(), 'finance')
    })
  })

  it('the portal sends calls under the log-in without a key, with test data or live data, and shows what a mistake was', async (t) => {
    await withPage(t, async (page) => {
      const { email } = await signUpIn(page, '/apis/trivia')
      await page.getByLabel('amount').fill('500')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByText(/400 in \d/).waitFor()
      await page.getByText('amount is invalid').first().waitFor()
      // If a user hears the page, they hear the reason and the name of the field.
      const amount = page.getByLabel('amount')
      assert.match(
        (await page.getByRole('status').filter({ hasText: '400 in' }).first().textContent()) ?? '',
        /400 in .*INVALID_PARAMETER.*amount/,
      )
      assert.equal(await amount.getAttribute('aria-invalid'), 'true')
      const described = (await amount.getAttribute('aria-describedby')) ?? ''
      assert.match((await page.locator(`#${described.split(' ').at(-1)}`).textContent()) ?? '', /amount is invalid/)
      await amount.fill(' 3 ')
      assert.equal(await amount.getAttribute('aria-invalid'), null)
      assert.ok(!((await amount.getAttribute('aria-describedby')) ?? '').includes('-hint'))
      assert.match((await page.locator('[data-language=curl] code').textContent()) ?? '', /amount=3/)
      await page.keyboard.press('Enter')
      await page.getByText(/200 in \d/).waitFor()
      const badge = page.locator('[data-mode]').first()
      assert.equal(await badge.textContent(), 'Test data', 'what was recorded has three questions')
      await page.getByLabel('category').fill('9')
      await page.keyboard.press('Enter')
      await page.getByText('Test data, not for these values').waitFor()
      // The form drops blanks around a number, and shows ids, headers and times of the answer.
      const details = page.locator('[data-details]').first()
      assert.match(
        (await details.textContent()) ?? '',
        /Request id\s*req_[0-9a-f]{32}.*Call id\s*call_[0-9a-f]{32}.*x-gateway-mode: test/s,
      )
      assert.match((await details.getByRole('img').getAttribute('aria-label')) ?? '', /^Where the time went: .+ ms/)
      // A text that consists of digits stays a text in the code.
      await page.goto('/apis/sports-scores')
      const scores = page.locator('section.endpoint').first()
      await scores.getByLabel('dates').fill('20250705')
      await scores.getByLabel('limit').fill('7')
      const code = (await scores.locator('[data-language="TypeScript client"] code').textContent()) ?? ''
      assert.match(code, /"dates": "20250705"/)
      assert.match(code, /"limit": 7/)
      await page.goto('/apis/trivia')
      await page.getByLabel('Live data').check()
      const sent = page.waitForRequest(/\/v1\/call\//)
      await page.getByRole('button', { name: 'Send' }).click()
      assert.equal((await sent).headers()['x-gateway-mode'], undefined)
      // No key was made on the way.
      await page.goto('/account/keys')
      await page.getByRole('button', { name: /^Revoke First key agw_test_….{4}$/ }).waitFor()
      assert.equal(await page.getByRole('button', { name: /^Revoke/ }).count(), 1)
      // More than one page of the listing.
      await sql(
        gateway,
        `insert into api_keys (id, user_id, environment, key_hash, last_four, label, created_at)
         select gen_random_uuid(), id, 'test', sha256(convert_to(email || n, 'UTF8')), 'aaaa', 'number ' || n, now() - make_interval(mins => n)
         from users, generate_series(1, 101) n where email = $1`,
        [email],
      )
      await page.reload()
      await page.getByText('number 101', { exact: true }).waitFor()
      assert.equal(await page.getByRole('button', { name: /^Revoke number/ }).count(), 101)
    })
  })

  it('the portal shows what an answer holds, what limits it, and how healthy its source is', async (t) => {
    await withPage(t, async (page) => {
      await page.goto('/apis/weather')
      const response = page.getByRole('region', { name: 'Response of /current' })
      await response.getByText('temperature_c').waitFor()
      await response.getByText('WMO 4677 code').waitFor()
      await page.getByText('600 per minute, 5,000 per hour, 10,000 per day, 4 at once').waitFor()
      await page.getByText('Cached 5 minutes').waitFor()
      await page.getByText('Errors of this endpoint').click()
      await page.getByRole('link', { name: 'UPSTREAM_TIMEOUT' }).waitFor()
      await page.goto('/apis/news')
      await page.getByText('The operator has not enabled this API: live calls are refused').waitFor()
    })
  })

  it('the portal manages a team, its members and its keys', async (t) => {
    const colleague = await signUp(gateway)
    await withPage(t, async (page) => {
      await signUpIn(page, '/account/teams')
      await page.getByLabel('Name').fill('Blue team')
      await page.getByRole('button', { name: 'Create team' }).click()
      const team = page.getByRole('region', { name: 'Blue team' })
      await team.getByText('count against your plan').waitFor()
      await page.reload()
      await team.getByLabel('Email').fill('nobody@example.com')
      await team.getByRole('button', { name: 'Add member' }).click()
      await team.getByText('No user has this email').waitFor()
      await team.getByLabel('Email').fill(colleague.email)
      await team.getByRole('button', { name: 'Add member' }).click()
      await team.getByLabel(`Role of ${colleague.email}`).selectOption('admin')
      await page.getByText('The role has been changed').waitFor()
      await team.getByRole('button', { name: 'Create key' }).click()
      assert.match((await page.locator('[data-new-key]').textContent()) ?? '', /^agw_test_/)
      const teams = await send(gateway, '/v1/teams', { token: colleague.token })
      const seen = await send(gateway, `/v1/teams/${teams.body.teams[0].id}`, { token: colleague.token })
      assert.equal(seen.body.yourRole, 'admin')
      assert.equal(seen.body.keys.length, 1)
      await team.getByRole('button', { name: `Make ${colleague.email} the owner` }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Make owner' }).click()
      await team.getByText('Your role: member').waitFor()
      await team.getByText(`count against the plan of ${colleague.email}`).waitFor()
      const memberId = seen.body.members.find(({ role }: { role: string }) => role === 'owner').id
      const address = `/v1/teams/${teams.body.teams[0].id}`
      const giveRole = async (role: string): Promise<void> => {
        const giving = { method: 'PUT', token: colleague.token, body: { role } }
        assert.equal((await send(gateway, `${address}/members/${memberId}`, giving)).status, 200)
      }
      await giveRole('admin')
      await send(gateway, '/v1/keys', { token: colleague.token, body: { teamId: teams.body.teams[0].id } })
      await page.reload()
      await team.getByRole('button', { name: /^Revoke/ }).waitFor()
      await giveRole('member')
      await page.reload()
      await team.getByText('Your role: member').waitFor()
      await team.locator('code.key').waitFor()
      assert.equal(await team.getByRole('button', { name: /^Revoke/ }).count(), 0)
      await send(gateway, `${address}/transfer`, { token: colleague.token, body: { memberId } })
      await page.reload()
      await team.getByLabel(`Role of ${colleague.email}`).selectOption('admin')
      await page.getByText('The role has been changed').waitFor()
      const body = { teamId: teams.body.teams[0].id, environment: 'test' }
      const { key } = (await send(gateway, '/v1/keys', { token: colleague.token, body })).body
      await page.reload()
      await team.getByRole('button', { name: `Remove ${colleague.email}` }).click()
      await page.getByRole('dialog').getByLabel('Also end the key of the team').check()
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
      await team.getByRole('button', { name: `Remove ${colleague.email}` }).waitFor({ state: 'detached' })
      assert.equal((await send(gateway, '/v1/teams', { token: colleague.token })).body.teams.length, 0)
      assert.equal((await send(gateway, '/v1/call/trivia/questions', { key })).status, 401)
      await team.getByRole('button', { name: 'Delete team' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('No teams yet').waitFor()
    })
  })

  it('the portal shows the plan and the calls, and keeps a provider key without showing it, even if its source is unreachable and cannot check it', async (t) => {
    await withPage(t, async (page) => {
      await signUpIn(page)
      await page.getByText('0 of 1,000 calls').waitFor()
      await page.locator('.chart canvas').waitFor()
      await page.getByLabel('Show by').selectOption('api')
      await page.getByText('No calls in this time').waitFor()
      await page.reload()
      await page.getByText('No calls in this time').waitFor()
      assert.equal(await page.getByLabel('Show by').inputValue(), 'api', 'its address says it')
      // The answer to an earlier choice arrives after the answer to the last choice.
      const { promise: goOn, resolve: letGoOn } = Promise.withResolvers<void>()
      await page.route('**/v1/usage?*groupBy=status*', async (route) => {
        await goOn
        await route.continue()
      })
      const late = page.waitForRequest('**/v1/usage?*groupBy=status*')
      await page.getByLabel('Show by').selectOption('status')
      await late
      await page.getByLabel('Show by').selectOption('day')
      await page.locator('.chart canvas').waitFor()
      const arrived = page.waitForResponse('**/v1/usage?*groupBy=status*')
      letGoOn()
      await (await arrived).finished()
      await page.evaluate('new Promise((done) => setTimeout(done))')
      assert.equal(await page.locator('.chart canvas').count(), 1)
      await page.unroute('**/v1/usage?*groupBy=status*')
      await page.getByRole('link', { name: 'Provider keys' }).click()
      await page.getByLabel('API', { exact: true }).selectOption('news')
      await page.getByLabel('Provider key').fill('a-provider-key-1234')
      await page.getByRole('button', { name: 'Save key' }).click()
      await page.getByRole('cell', { name: '1234' }).waitFor()
      assert.doesNotMatch(await page.content(), /a-provider-key/)
      const unchecked = page.getByText(
        /^News did not give a usable answer, so the key could not be checked\. The key is saved\./,
      )
      await unchecked.waitFor()
      await page.getByRole('button', { name: 'Check the key of News' }).click()
      await page.getByText('The key could not be checked', { exact: true }).waitFor()
      await unchecked.waitFor()
      await page.getByRole('button', { name: 'Delete the key of News' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('No provider keys yet').waitFor()
    })
  })

  it('the portal shows whether live or test calls of this minute are used up, and blocks only these calls, in every form of the page', async (t) => {
    const example = (await loadUpstreams()).get('geocoding')?.endpoints['/search']?.example
    upstream.play('geocoding', () => example?.response)
    await withPage(t, async (page) => {
      await signUpIn(page, '/apis/geocoding')
      const buttons = page.locator('[data-try] button[type=submit]')
      for (let left = 9; left >= 0; left -= 1) {
        await buttons.first().click()
        await page.getByText(`· ${left} test ${left === 1 ? 'call' : 'calls'} left this minute`).waitFor()
      }
      await buttons.first().click()
      await page.getByText('You have used your 10 test calls of this minute. Live calls are counted apart.').waitFor()
      for (const button of await buttons.all()) {
        assert.match((await button.textContent()) ?? '', /^Send in \d+ s$/)
        assert.equal(await button.isDisabled(), true)
      }
      await page.getByLabel('Live data').check()
      for (const button of await buttons.all()) {
        assert.equal(await button.textContent(), 'Send')
        assert.equal(await button.isDisabled(), false)
      }
      await buttons.first().click()
      await page.getByText('· 9 live calls left this minute').waitFor()
      // Another account may have calls left, and only its answer can tell.
      await page.getByLabel('An API key').check()
      assert.equal(await buttons.first().isDisabled(), false)
      await page.getByLabel('Test data').check()
      assert.match((await buttons.first().textContent()) ?? '', /^Send in \d+ s$/)
    })
  })

  it('the portal changes the password, warns of a common one, and makes keys that expire', async (t) => {
    await withPage(t, async (page) => {
      const { email, password } = await signUpIn(page, '/account/settings')
      await page.getByLabel('New password').fill('password123')
      await page.getByText('one of the most common passwords').waitFor()
      await page.getByLabel('New password').fill('another long password')
      await page.getByText('one of the most common passwords').waitFor({ state: 'hidden' })
      await page.getByLabel('Current password').fill('not this one')
      await page.getByRole('button', { name: 'Change password' }).click()
      await page.getByText('The current password is wrong. Enter it again.').waitFor()
      await page.getByLabel('Current password').fill(password)
      await page.getByRole('button', { name: 'Change password' }).click()
      await page.getByText('The password has been changed').waitFor()
      const login = { email, password: 'another long password' }
      assert.equal((await send(gateway, '/v1/auth/login', { body: login })).status, 200)

      await page.getByRole('link', { name: 'API keys' }).click()
      await page.getByLabel('Expires').selectOption('30')
      await page.getByRole('button', { name: 'Create key' }).click()
      const key = (await page.locator('[data-new-key]').textContent()) ?? ''
      const shown = `agw_test_…${key.slice(-4)}`
      await page.getByRole('button', { name: `Revoke ${shown}` }).click()
      await page.getByRole('dialog').getByText(`Revoke ${shown} (created`).waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Keep' }).click()
      await page.getByRole('button', { name: 'Create key' }).click()
      await page
        .getByRole('button', { name: /^Revoke/ })
        .nth(2)
        .waitFor()
      const second = ((await page.locator('[data-new-key]').textContent()) ?? '').slice(-4)
      await page.getByRole('button', { name: `Revoke agw_test_…${second}` }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
      // If a key is refused, the page does not offer to copy it.
      await page.locator('[data-new-key]').waitFor({ state: 'detached' })
      const { token } = (await send(gateway, '/v1/auth/login', { body: login })).body
      const [made] = (await send(gateway, '/v1/keys', { token })).body.keys
      const days = (Date.parse(made.expiresAt) - Date.now()) / 86_400_000
      assert.ok(days > 29.9 && days < 30.1)
    })
  })

  it('the portal can be used with only the keyboard', async (t) => {
    await withPage(t, async (page) => {
      await page.goto('/apis/weather')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      assert.equal(await page.evaluate('document.activeElement.id'), 'main')
      await page.getByRole('tab', { name: 'curl' }).focus()
      await page.keyboard.press('ArrowRight')
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'JavaScript')
      assert.equal(await page.locator('[data-language=JavaScript]').isVisible(), true)
    })
  })

  it('the portal has a reference of its own whose forms send under the log-in', async (t) => {
    await withPage(t, async (page) => {
      const { email } = await signUpIn(page)
      await page.getByRole('link', { name: 'Docs', exact: true }).first().click()
      await page.getByRole('link', { name: 'Account routes' }).first().click()
      const operation = page.locator('#getMe')
      await operation.getByText('/v1/me', { exact: true }).click()
      await operation.getByRole('button', { name: 'Send' }).click()
      await operation.getByText(email).waitFor()
      await operation.getByRole('link', { name: 'AUTH_REQUIRED' }).waitFor()
      await page.goto('/docs/errors')
      await page.getByLabel('Find a code').fill('monthly')
      await page.getByText('1 of').waitFor()
      await page.getByText('The calls of the month are used up').waitFor()
    })
  })

  it('the portal searches its documentation from the keyboard: a slash, words, Enter', async (t) => {
    await withPage(t, async (page) => {
      await page.goto('/docs')
      await page.keyboard.press('/')
      await page.keyboard.type('rotate a key')
      await page.keyboard.press('Enter')
      const first = page.locator('.found a').first()
      await first.waitFor()
      assert.equal(new URL(page.url()).search, '?q=rotate+a+key')
      await first.click()
      await page.waitForURL('**/docs/guides/keys#rotate-a-key')
      // In a field the key types a letter.
      await page.locator('#docs-q').pressSequentially('a/b')
      assert.equal(await page.locator('#docs-q').inputValue(), 'a/b')
    })
  })

  it('the portal sends pages with a policy that allows no inline scripts or styles, and files that browsers may cache for ever', async () => {
    const page = await fetch(`${gateway.url}/`)
    const policy = page.headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'/)
    assert.doesNotMatch(policy, /unsafe|\*|https?:/)
    const text = await page.text()
    assert.doesNotMatch(text, /<script(?![^>]* src=)|<style| style=| on\w+=/)
    const [, file = ''] = /src="(\/assets\/[^"]+)"/.exec(text) ?? []
    const script = await fetch(gateway.url + file)
    assert.match(script.headers.get('cache-control') ?? '', /immutable/)
    const etag = script.headers.get('etag') ?? ''
    assert.equal((await fetch(gateway.url + file, { headers: { 'if-none-match': etag } })).status, 304)
    const other = await fetch(`${gateway.url}${file.replace(/assets\/[^/]+/, 'assets/old')}`)
    assert.equal(other.headers.get('cache-control'), 'no-cache')
    assert.equal((await fetch(`${gateway.url}/assets/x/..%2f..%2fconfig.ts`)).status, 404)
  })

  it('the portal answers an unknown address with a page for people and with JSON for programs', async () => {
    const browser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
    const ask = async (path: string, headers: Record<string, string>, method = 'GET') => {
      const answer = await fetch(gateway.url + path, { method, headers, redirect: 'manual' })
      return { answer, type: answer.headers.get('content-type') ?? '', text: await answer.text() }
    }
    for (const path of ['/apis/wether', '/wether']) {
      const { answer, type, text } = await ask(path, browser)
      assert.equal(answer.status, 404)
      assert.match(type, /^text\/html/)
      assert.match(answer.headers.get('content-security-policy') ?? '', /default-src 'none'/)
      assert.match(text, /<a href="\/apis\/weather">Weather<\/a>/)
      for (const accept of ['*/*', 'application/json', 'application/json, text/html;q=0.5']) {
        assert.match((await ask(path, { accept })).type, /^application\/json/)
      }
    }
    assert.match((await ask('/%3Cscript%3Ealert(1)', browser)).text, /No such page/)
    assert.doesNotMatch((await ask('/%3Cscript%3Ealert(1)', browser)).text, /<script>alert/)
    const guide = await ask('/docs/guides/limits', browser)
    assert.equal(guide.answer.status, 404)
    assert.match(guide.text, /action="\/docs\/search#found".*Search the documentation.*value="limits"/s)
    assert.doesNotMatch(guide.text, /Did you mean/)
    assert.match((await ask('/signup', browser, 'POST')).text, /This form needs JavaScript/)
    assert.match((await ask('/v1/nothing', browser)).type, /^application\/json/)
    for (const [path, to] of [
      ['/apis', '/'],
      ['/docs/guides', '/docs'],
    ] as const) {
      const { status, headers } = (await ask(path, browser)).answer
      assert.deepEqual([status, headers.get('location')], [308, to])
    }
    const { answer } = await ask('/mcp', browser)
    assert.equal(answer.status, 303)
    assert.equal(answer.headers.get('location'), '/agents')
    assert.equal((await ask('/mcp', { accept: 'text/event-stream' })).answer.status, 405)
  })

  it('the portal allows test calls with a session or a live key, but no live calls with a test key', async () => {
    const { token, live, test } = await signUp(gateway)
    const mode = async (credential: { token?: string; key?: string }, asked: string) =>
      (
        await send(gateway, '/v1/call/mock-data/posts?id=1', { ...credential, headers: { 'x-gateway-mode': asked } })
      ).headers.get('x-gateway-mode')
    assert.equal(await mode({ token }, 'test'), 'test')
    assert.equal(await mode({ token }, 'anything'), null)
    assert.equal(await mode({ key: live }, 'test'), 'test')
    assert.equal(await mode({ key: live }, 'live'), null)
    assert.equal(await mode({ key: test }, 'live'), 'test')
  })

  it('the portal accepts the session cookie only from its own pages', async () => {
    const { email, password } = await signUp(gateway)
    const own = { 'x-portal-request': '1', 'content-type': 'application/json' }
    const login = (headers: Record<string, string>) =>
      fetch(`${gateway.url}/portal/login`, { method: 'POST', headers, body: JSON.stringify({ email, password }) })
    assert.equal((await login({ 'content-type': 'application/json' })).status, 403)
    assert.equal((await login({ ...own, origin: 'https://evil.example' })).status, 403)
    assert.equal((await login({ ...own, 'sec-fetch-site': 'cross-site' })).status, 403)
    const answer = await login({ ...own, origin: gateway.url, 'sec-fetch-site': 'same-origin' })
    assert.equal(answer.status, 204)
    assert.equal(await answer.text(), '')
    const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? ''
    const me = async (headers: Record<string, string>) =>
      (await send(gateway, '/v1/me', { headers: { cookie, ...headers } })).status
    assert.equal(await me({ 'x-portal-request': '1' }), 200)
    assert.equal(await me({}), 401)
    assert.equal(await me({ 'x-portal-request': '1', origin: 'https://evil.example' }), 401)
    assert.equal(await me({ 'x-portal-request': '1', 'sec-fetch-site': 'same-site' }), 401)
  })
})
