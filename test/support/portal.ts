import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { Browser, BrowserContext, ConsoleMessage, Page, Request } from 'playwright-core'
import type { Gateway } from './gateway.ts'

/**
 * Opens a page as a new visitor. The test fails if the page logs an error or sends a request to
 * another host.
 */
export async function visitPortal(
  t: TestContext,
  { gateway, browser, mayLoad = [] }: { gateway: Gateway; browser: Browser | undefined; mayLoad?: string[] },
  use: (page: Page, context: BrowserContext) => Promise<void>,
): Promise<void> {
  if (!browser) return t.skip('there is no Chromium, and it may not be installed here')
  const page = await freshPage(browser, gateway.url)
  const complaints: string[] = []
  const onPageError = (error: Error) => void complaints.push(error.message)
  const onConsole = (message: ConsoleMessage) => {
    // The browser also logs the refusals that a test provokes.
    if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) complaints.push(message.text())
  }
  const onRequest = (request: Request) => {
    const isExpected = [gateway.url, ...mayLoad].some((origin) => request.url().startsWith(origin))
    if (!isExpected && !/^(data|blob|about):/.test(request.url())) complaints.push(request.url())
  }
  page.on('pageerror', onPageError).on('console', onConsole).on('request', onRequest)
  try {
    await use(page, page.context())
    assert.deepEqual(complaints, [])
  } catch (error) {
    await page.context().close()
    throw error
  }
  page.off('pageerror', onPageError).off('console', onConsole).off('request', onRequest)
  tabs.set(browser, { url: gateway.url, page })
}

/**
 * The tab that the visitors of a portal use one after the other. If each visitor had a tab, each
 * would cost a process of Chromium, which compiles the scripts of the portal again.
 */
const tabs = new WeakMap<Browser, { url: string; page: Page }>()

const WINDOW = { width: 1_280, height: 720 }

/** Returns a tab that has stored nothing of earlier visitors. */
async function freshPage(browser: Browser, url: string): Promise<Page> {
  const known = tabs.get(browser)
  tabs.delete(browser)
  if (known?.url !== url) {
    await known?.page.context().close()
    const permissions = ['clipboard-read', 'clipboard-write']
    const context = await browser.newContext({ baseURL: url, permissions, viewport: WINDOW })
    return await context.newPage()
  }
  const { page } = known
  await page.context().clearCookies()
  // A page without scripts, so that nothing is stored again.
  await page.goto('/llms.txt')
  await page.evaluate('localStorage.clear(), sessionStorage.clear()')
  await page.goto('about:blank')
  await page.emulateMedia({ colorScheme: null })
  await page.setViewportSize(WINDOW)
  return page
}

/**
 * Signs up with the requests of the portal's form, which leave the session in the browser and a
 * test key in the account, and opens a page of the portal.
 */
export async function signUpIn(page: Page, path = '/account'): Promise<{ email: string; password: string }> {
  const person = { email: `${randomUUID()}@example.com`, password: `pass ${randomUUID()}` }
  const post = async (to: string, data: object): Promise<void> => {
    const response = await page.request.post(to, { data, headers: { 'x-portal-request': '1' } })
    assert.ok(response.ok(), `${to} was answered ${response.status()}`)
  }
  await post('/portal/signup', person)
  await post('/v1/keys', { label: 'First key', environment: 'test' })
  await page.goto(path)
  return person
}

/** Signs up as a visitor does, and goes on to the account's overview. */
export async function signUpByForm(page: Page): Promise<void> {
  const person = { email: `${randomUUID()}@example.com`, password: `pass ${randomUUID()}` }
  await page.goto('/')
  await page.getByRole('link', { name: 'Get a key' }).click()
  await page.getByLabel('Email').fill(person.email)
  await page.getByLabel('Password').fill(person.password)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByRole('button', { name: 'Send' }).waitFor()
  await page.getByRole('link', { name: 'Account' }).click()
  await page.getByText(person.email).waitFor()
}
