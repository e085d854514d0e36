import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import axe, { type AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'

/**
 * What axe finds wrong with a page: rule, and where; all rules, or these alone. It runs by the
 * debugger, which the page's own policy leaves alone.
 */
export async function axeFindings(page: Page, rules?: string[]): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations, passes } = await page.evaluate<AxeResults>(
    `axe.run(${JSON.stringify(rules ? { runOnly: rules } : {})})`,
  )
  assert.ok(passes.length > (rules ? 0 : 10), 'axe looked at nothing')
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`),
  )
}

/**
 * A folder for pictures of the pages that are looked at, by `TEST_SCREENSHOTS`; without it none are
 * taken.
 */
const SHOTS = process.env.TEST_SCREENSHOTS

/**
 * Checks a page on a desktop in light and on a phone in dark. It fails if axe finds anything, or if
 * anything is wider than the window.
 */
export async function checkLook(page: Page, name: string): Promise<void> {
  for (const [width, colorScheme] of [
    [1280, 'light'],
    [390, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme })
    await page.evaluate('Promise.all(document.getAnimations().map((animation) => animation.finished))')
    assert.deepEqual(await axeFindings(page), [], `${name} ${colorScheme}`)
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    assert.ok(Number(overflow) <= 0, `${name} is ${overflow} px too wide at ${width}`)
    if (!SHOTS) continue
    mkdirSync(SHOTS, { recursive: true })
    await page.screenshot({ path: join(SHOTS, `${name}-${width}.png`), fullPage: true })
  }
}
