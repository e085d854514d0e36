import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { launchBrowser } from '../support/browser.ts'
import { startGateway } from '../support/gateway.ts'
import { installBrowser } from '../support/install-browser.ts'
import { signUpIn } from '../support/portal.ts'
import { animate, type Frame } from './animated-png.ts'
import { ROOT } from './sources.ts'

/**
 * `node test/tools/recording.ts` draws the recording of README again, from the search in the
 * catalog to an answer. It writes `.github/images/portal.png`, an animated PNG made of screenshots.
 */
const SIZE = { width: 880, height: 560 }

const frames: Frame[] = []

async function shoot(page: Page, forMs: number): Promise<void> {
  frames.push({ png: await page.screenshot(), forMs })
}

async function type(page: Page, name: string, text: string): Promise<void> {
  const field = page.getByLabel(name)
  for (let end = 1; end <= text.length; end += 2) {
    await field.fill(text.slice(0, end + 1))
    await shoot(page, 160)
  }
}

async function record(page: Page): Promise<void> {
  await signUpIn(page, '/')
  await shoot(page, 2_000)
  await page.locator('#catalog').evaluate((element) => element.scrollIntoView())
  await shoot(page, 800)
  await type(page, 'Search', 'exchange rate')
  await shoot(page, 1_500)
  await page.getByRole('link', { name: 'Currency rates' }).click()
  await page.locator('#e1').evaluate((element) => element.scrollIntoView())
  await shoot(page, 2_000)
  await page.locator('#e1-to').fill('EUR')
  await shoot(page, 1_000)
  await page.locator('.endpoint').nth(1).getByRole('button', { name: 'Send' }).click()
  await page.locator('.endpoint').nth(1).locator('[data-details] figure').waitFor()
  await shoot(page, 3_000)
  await page.locator('.endpoint').nth(1).locator('[data-details]').scrollIntoViewIfNeeded()
  await shoot(page, 3_000)
  await page.locator('.endpoint').nth(1).getByRole('tab', { name: 'Python' }).click()
  await page.locator('#e1').evaluate((element) => element.scrollIntoView())
  await shoot(page, 3_000)
}

const gateway = await startGateway({})
await installBrowser(console.log)
const browser = await launchBrowser()
try {
  if (!browser) throw new Error('there is no Chromium, and it may not be installed here')
  const context = await browser.newContext({ baseURL: gateway.url, viewport: SIZE, colorScheme: 'light' })
  await record(await context.newPage())
  const picture = animate(frames)
  writeFileSync(join(ROOT, '.github/images/portal.png'), picture)
  const seconds = frames.reduce((sum, { forMs }) => sum + forMs, 0) / 1_000
  console.log(`${frames.length} frames, ${seconds} s, ${Math.round(picture.length / 1_000)} kB`)
} finally {
  await browser?.close()
  await gateway.stop()
}
