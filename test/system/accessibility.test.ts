import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { axeFindings, RULES_OF_LOOK } from '../support/axe.ts'
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
  '/docs/search?q=key',
  '/signup',
  '/login',
]
const PRIVATE = [
  '/account',
  '/account/keys',
  '/account/calls',
  '/account/teams',
  '/account/provider-keys',
  '/account/connections',
  '/account/settings',
]

describe('every page of the portal', () => {
  let gateway: Gateway
  let browser: Browser | undefined

  before(async () => {
    gateway = await startGateway({ isInProcess: true, workers: 0 })
    browser = await launchBrowser()
  })
  after(async () => {
    await browser?.close()
    await gateway.stop()
  })

  async function check(page: Page, path: string, rules?: string[]): Promise<void> {
    assert.deepEqual(await axeFindings(page, rules), [], path)
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    assert.ok(Number(overflow) <= 0, `${path} is ${overflow} px too wide`)
  }

  /** Goes to another page as a link of the portal does: axe and the scripts stay loaded. */
  async function followLink(page: Page, path: string): Promise<void> {
    await page.evaluate(`document.body.append(Object.assign(document.createElement('a'), { href: '${path}' }))`)
    await page.evaluate('document.body.lastChild.click(), document.body.lastChild.remove()')
    await page.waitForURL(`**${path}`)
    await page.locator('html.loading').waitFor({ state: 'detached' })
  }

  it('a fault in the last of many elements that are alike is found, and all elements are in the page afterwards', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      const row = (link: string) => `<tr><td>a</td><td><a href="/x">${link}</a></td></tr>`
      await page.setContent(`<main><table>${row('well').repeat(9)}${row('')}</table></main>`)
      const html = await page.content()
      const findings = await axeFindings(page, ['link-name'])
      assert.deepEqual([findings.length, /^link-name: tr/.test(findings[0] ?? '')], [1, true], findings.join())
      assert.equal(await page.content(), html)
    })
  })

  it('every page of the portal has no fault that axe finds and does not scroll sideways, wide and light or narrow and dark', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await signUpIn(page)
      for (const path of [...PUBLIC, ...PRIVATE]) {
        await page.setViewportSize({ width: 1280, height: 900 })
        await page.emulateMedia({ colorScheme: 'light' })
        await followLink(page, path)
        await page.locator('[aria-busy=true]').waitFor({ state: 'detached' })
        const twice =
          '[...document.querySelectorAll("[id]")].map(({ id }) => id).filter((id, at, ids) => ids.indexOf(id) < at)'
        assert.deepEqual(await page.evaluate(twice), [], `${path}: an id is there twice`)
        await check(page, `${path}, wide and light`)
        await page.setViewportSize({ width: 390, height: 900 })
        await page.emulateMedia({ colorScheme: 'dark' })
        await page.evaluate('Promise.all(document.getAnimations().map((animation) => animation.finished))')
        await check(page, `${path}, narrow and dark`, RULES_OF_LOOK)
      }
    })
  })

  it('very long names wrap, and the buttons of every row stay visible, in wide and narrow windows', async (t) => {
    await visitPortal(t, { gateway, browser }, async (page) => {
      await signUpIn(page, '/account/teams')
      await page.getByLabel('Name').fill('t'.repeat(100))
      await page.getByRole('button', { name: 'Create team' }).click()
      await page.getByLabel('Label').fill('k'.repeat(255))
      await page.getByRole('button', { name: 'Create key' }).click()
      await page.locator('[data-new-key]').waitFor()
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 900 })
        for (const name of [/^Open t/, /^Revoke k/]) {
          const box = await page.getByRole('button', { name }).boundingBox()
          assert.ok(box && box.x + box.width <= width, `${name} ends at ${box && box.x + box.width} of ${width} px`)
          // A part that scrolls sideways hides what is beyond its edge.
          const hidden = await page
            .locator('.scroll')
            .evaluateAll((parts) => parts.map((part) => part.scrollWidth - part.clientWidth))
          assert.ok(Math.max(...hidden) <= 0, `${hidden} px are hidden, ${width} px wide`)
        }
        await page.getByRole('button', { name: /^Revoke k/ }).click()
        const overflow = await page.locator('dialog').evaluate((dialog) => dialog.scrollWidth - dialog.clientWidth)
        assert.ok(overflow <= 0, `the dialog is ${overflow} px too wide`)
        await page.getByRole('button', { name: 'Keep' }).click()
      }
    })
  })
})
