import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'

/** A browser may take its time on a busy machine, milliseconds. */
const START_MS_MAX = 120_000

/**
 * Starts the system's Chromium without a window. Where it is missing and may be installed without asking (root on a
 * Debian), it is.
 *
 * @returns undefined where there is no browser; the test then skips and says so
 */
export async function launchBrowser(): Promise<Browser | undefined> {
  if (!existsSync(CHROMIUM) && process.getuid?.() === 0 && existsSync('/etc/debian_version')) {
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    spawnSync('apt-get', ['update'], { env: environment })
    spawnSync('apt-get', ['install', '-y', '--no-install-recommends', 'chromium'], { env: environment })
  }
  if (!existsSync(CHROMIUM)) return undefined
  // Drawn by the processor, in one process fewer: a fifth of what the pages of the portal cost.
  const drawing = ['--disable-gpu', '--in-process-gpu']
  // Root has no sandbox of its own to give.
  const args = process.getuid?.() === 0 ? [...drawing, '--no-sandbox'] : drawing
  return await chromium.launch({ executablePath: CHROMIUM, args, timeout: START_MS_MAX })
}
