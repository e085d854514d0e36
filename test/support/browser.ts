import { type Browser, chromium } from 'playwright-core'
import { findBrowser } from './install-browser.ts'

/** How long a browser may take on a busy machine, milliseconds. */
const START_MS_MAX = 120_000

/**
 * Starts the system's Chromium without a window.
 *
 * @returns undefined if there is no browser; the test then skips and says so
 */
export async function launchBrowser(): Promise<Browser | undefined> {
  const executablePath = findBrowser()
  if (executablePath === undefined) return undefined
  // The process of the page draws. With a graphics process, the pages of the portal would cost five
  // times as much.
  const drawing = ['--disable-gpu', '--in-process-gpu']
  // Chromium refuses to start as root with a sandbox.
  const args = process.getuid?.() === 0 ? [...drawing, '--no-sandbox'] : drawing
  return await chromium.launch({ executablePath, args, timeout: START_MS_MAX })
}
