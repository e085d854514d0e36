import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import type { Gateway } from './gateway.ts'

/**
 * A page of a new visitor. The test fails if the page logs an error or sends a request to another
 * host.
 */
export async function visitPortal(
  t: TestContext,
  { gateway, browser, mayLoad = [] }: { gateway: Gateway; browser: Browser | undefined; mayLoad?: string[] },
  use: (page: Page, context: BrowserContext) => Promise<void>,
  options: BrowserContextOptions = {},
): Promise<void> {
  if (!browser) return t.skip('there is no Chromium, and it may not be installed here')
  const permissions = ['clipboard-read', 'clipboard-write']
  const context = await browser.newContext({ baseURL: gateway.url, permissions, ...options })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    // The browser also logs the refusals that a test provokes.
    if (message.type() === 'error' && !/status of 4\d\d/.test(message.text())) complaints.push(message.text())
  })
  page.on('request', (request) => {
    const isExpected = [gateway.url, ...mayLoad].some((origin) => request.url().startsWith(origin))
    if (!isExpected && !/^(data|blob):/.test(request.url())) complaints.push(request.url())
  })
  try {
    await use(page, context)
    assert.deepEqual(complaints, [])
  } finally {
    await context.close()
  }
}

/** Signs up as a visitor does, and goes on to the account's overview. */
export async function signUpIn(page: Page): Promise<{ email: string; password: string }> {
  const person = { email: `${randomUUID()}@example.com`, password: `pass ${randomUUID()}` }
  await page.goto('/')
  await page.getByRole('link', { name: 'Get a key' }).click()
  await page.getByLabel('Email').fill(person.email)
  await page.getByLabel('Password').fill(person.password)
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByRole('button', { name: 'Send' }).waitFor()
  await page.getByRole('link', { name: 'Account' }).click()
  await page.getByText(person.email).waitFor()
  return person
}
