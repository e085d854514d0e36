import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { waitFor } from '../../src/local/embedded/server-process.ts'
import { findBrowser } from './install-browser.ts'

/** How long a browser may take on a busy machine, milliseconds. */
const START_MS_MAX = 120_000

/** How long `npm test` may take to install the browser, milliseconds. */
const INSTALL_MS_MAX = 120_000

/**
 * Starts the system's Chromium without a window, when `npm test` has installed it.
 *
 * @returns undefined if there is no browser; the test then skips and says so
 */
export async function launchBrowser(): Promise<Browser | undefined> {
  await untilInstalled()
  const executablePath = findBrowser()
  if (executablePath === undefined) return undefined
  // The process of the page draws. With a graphics process, the pages of the portal would cost five
  // times as much.
  const drawing = ['--disable-gpu', '--in-process-gpu']
  // Chromium refuses to start as root with a sandbox.
  const args = process.getuid?.() === 0 ? [...drawing, '--no-sandbox'] : drawing
  return await chromium.launch({ executablePath, args, timeout: START_MS_MAX })
}

/** Waits until the run of `npm test` has installed the browser, or has said why it cannot. */
async function untilInstalled(): Promise<void> {
  const mark = process.env.TEST_BROWSER_MARK
  if (mark === undefined) return
  const isInstalled = await waitFor(() => existsSync(mark) || undefined, { timeoutMs: INSTALL_MS_MAX })
  if (!isInstalled) throw new Error(`Chromium has not been installed in ${INSTALL_MS_MAX} ms.`)
}
