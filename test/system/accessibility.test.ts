import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { axeFindings } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { signUpIn, visitPortal } from '../support/portal.ts'

const PUBLIC = [
  '/',
  '/apis/weather',
  '/apis/sports-scores',
  '/agents',
  '/docs',
  '/docs/reference',
  '/docs/guides/limits-and-waits',
  '/docs/errors',
  '/signup',
  '/login',
]
const PRIVATE = [
  '/account',
  '/account/keys',
  '/account/teams',
  '/account/provider-keys',
  '/account/connections',
  '/account/settings',
]

/** Pages of hundreds of parts, all of the same kinds: one look at them is enough. */
const LONG = ['/docs/reference', '/docs/errors']

describe('every page of the portal', () => {
  let gateway: Gateway
  let browser: Browser | undefined

  before(async () => {
    gateway = await startGateway({ isLocal: true, workers: 0 })
    browser = await launchBrowser()
  })
  after(async () => {
    await browser?.close()
    await gateway.stop()
  })

  for (const [width, colorScheme, rules] of [
    [1280, 'light', undefined],
    // The same documents: what differs is colours and the room that things have.
    [390, 'dark', ['color-contrast', 'target-size', 'scrollable-region-focusable', 'link-in-text-block']],
  ] satisfies [number, 'light' | 'dark', string[] | undefined][]) {
    it(`has no fault that axe finds and does not scroll sideways, ${width} px wide in ${colorScheme}`, async (t) => {
      const use = async (page: Page): Promise<void> => {
        await signUpIn(page)
        const paths = [...PUBLIC, ...PRIVATE].filter((path) => width === 1280 || !LONG.includes(path))
        for (const path of paths) {
          await page.goto(path)
          await page.locator('[aria-busy=true]').waitFor({ state: 'detached' })
          assert.deepEqual(await axeFindings(page, rules), [], path)
          const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
          assert.ok(Number(overflow) <= 0, `${path} is ${overflow} px too wide`)
        }
      }
      await visitPortal(t, { gateway, browser }, use, { viewport: { width, height: 900 }, colorScheme })
    })
  }
})
