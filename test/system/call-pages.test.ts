import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { checkLook } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { createKey, send } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { signUpIn, visitPortal } from '../support/portal.ts'

describe('the pages of calls in the portal', () => {
  let gateway: Gateway
  let browser: Browser | undefined

  before(async () => {
    gateway = await startGateway({ isInProcess: true })
    browser = await launchBrowser()
  })
  after(async () => {
    await browser?.close()
    await gateway.stop()
  })

  it('a list of calls leads to a page that shows where the time of one went, by filter and by id', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      const { token } = (await send(gateway, '/v1/auth/login', { body: await signUpIn(page) })).body
      const { key } = await createKey(gateway, token, 'test')
      const weather = '/v1/call/weather/current?latitude=1&longitude=2'
      const answered = await send(gateway, weather, { key })
      await send(gateway, '/v1/call/weather/current', { key })
      await send(gateway, '/v1/call/trivia/questions', { key, headers: { 'x-gateway-scenario': 'upstream-500' } })
      const written = async () => (await send(gateway, '/v1/logs', { token })).body.calls.length
      await until(async () => (await written()) === 3, 10_000)

      await page.goto('/account/calls')
      await page.getByText('INVALID_PARAMETER').waitFor()
      await checkLook(page, 'calls')
      await page.getByText('Filter', { exact: true }).first().click()
      await page.getByLabel('Status').selectOption('5xx')
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.waitForURL(/status=5xx/)
      // The earlier list is gone while the page reads the new list.
      await page.getByText('UPSTREAM_ERROR').first().waitFor()
      await page.getByRole('cell', { name: /^502 UPSTREAM_ERROR\s*HTTP 500/ }).waitFor()
      await page.getByText('INVALID_PARAMETER').waitFor({ state: 'detached' })
      await until(async () => (await page.locator('tbody tr').count()) === 1, 10_000)
      await page.locator('tbody a').click()
      await page.getByRole('heading', { name: /^Took/ }).waitFor()
      await checkLook(page, 'failed-call')

      // A filter without a field stays.
      await page.goto('/account/calls?code=UPSTREAM_ERROR')
      await page.getByLabel('Mode').selectOption('test')
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.waitForURL(/\?code=UPSTREAM_ERROR&mode=test$/)

      await page.goto('/account/calls')
      await page.getByLabel('X-Call-Id or X-Request-Id').fill(` ${answered.headers.get('x-request-id')}`)
      await page.getByRole('button', { name: 'Find' }).click()
      // Parts that took no time are left out: which parts took some, the machine decides.
      await page.getByRole('img', { name: /^Where the time went: .* ms/ }).waitFor()
      assert.match(page.url(), new RegExp(`/account/calls/${answered.headers.get('x-call-id')}$`))
      await page.getByText('weather/current').waitFor()
      await checkLook(page, 'call')
    })
  })

  it('the page of an unknown call says that the log does not have it, and an id of a wrong form is not sent', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await signUpIn(page, `/account/calls/call_${'0'.repeat(32)}`)
      await page.getByText('The log has no call of your account with this id.').waitFor()
      await page.goto('/account/calls')
      await page.getByText('The log has no calls of your account yet').waitFor()
      await checkLook(page, 'no-calls')
    })
  })
})
