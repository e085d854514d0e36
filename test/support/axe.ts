import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import axe, { type Result } from 'axe-core'
import type { Page } from 'playwright-core'
import { runAxe } from './run-axe.js'

/**
 * Rules that may differ between the wide light page and the narrow dark page: colours and spacing.
 */
export const RULES_OF_LOOK = ['color-contrast', 'target-size', 'scrollable-region-focusable', 'link-in-text-block']

/** How many elements of a page that look alike in the same place axe sees. */
const ALIKE_MAX = 3

/**
 * Returns the rules of axe that a page breaks. It checks all rules, or only `rules`. axe runs
 * through the debugger, which the policy of the page does not restrict. It describes no element
 * that is right, because descriptions are most of its work. `runAxe` says which elements look
 * alike; it sees `alikeMax` of them.
 */
export async function axeViolations(page: Page, rules?: string[], alikeMax = ALIKE_MAX): Promise<Result[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source)
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) }
  const { violations, passed } = await page.evaluate(runAxe, { options, alikeMax })
  assert.ok(passed > (rules ? 0 : 10), 'axe looked at nothing')
  return violations
}

/**
 * Returns the findings of axe about a page, each with rule and place. It checks all rules, or only
 * `rules`.
 */
export async function axeFindings(page: Page, rules?: string[]): Promise<string[]> {
  return (await axeViolations(page, rules)).flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`),
  )
}

/**
 * The folder for screenshots of the pages, from `TEST_SCREENSHOTS`; without it, no screenshots are
 * made.
 */
const SHOTS = process.env.TEST_SCREENSHOTS

/**
 * Checks a page on a desktop in light and on a phone in dark. It fails if axe finds anything, or if
 * anything is wider than the window.
 */
export async function checkLook(page: Page, name: string): Promise<void> {
  for (const [width, colorScheme, rules] of [
    [1280, 'light', undefined],
    [390, 'dark', RULES_OF_LOOK],
  ] as const) {
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme })
    await page.evaluate('Promise.all(document.getAnimations().map((animation) => animation.finished))')
    assert.deepEqual(await axeFindings(page, rules), [], `${name} ${colorScheme}`)
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    assert.ok(Number(overflow) <= 0, `${name} is ${overflow} px too wide at ${width}`)
    if (!SHOTS) continue
    mkdirSync(SHOTS, { recursive: true })
    await page.screenshot({ path: join(SHOTS, `${name}-${width}.png`), fullPage: true })
  }
}
