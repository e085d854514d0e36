import assert from 'node:assert/strict'
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
