import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

/**
 * Debian's packages of Chromium, whose programs have the names of the packages. The first package
 * cannot open a window and needs half of the processor time.
 */
const PACKAGES = ['chromium-headless-shell', 'chromium']

/** How long a browser may take on a busy machine, milliseconds. */
const START_MS_MAX = 120_000

/**
 * Starts the system's Chromium without a window. If Chromium is missing and this process may
 * install it without a question (root on Debian), it installs Chromium.
 *
 * @returns undefined if there is no browser; the test then skips and says so
 */
export async function launchBrowser(): Promise<Browser | undefined> {
  const executablePath = findBrowser() ?? installBrowser()
  if (executablePath === undefined) return undefined
  // The process of the page draws. With a graphics process, the pages of the portal would cost five
  // times as much.
  const drawing = ['--disable-gpu', '--in-process-gpu']
  // Chromium refuses to start as root with a sandbox.
  const args = process.getuid?.() === 0 ? [...drawing, '--no-sandbox'] : drawing
  return await chromium.launch({ executablePath, args, timeout: START_MS_MAX })
}

function findBrowser(): string | undefined {
  return PACKAGES.map((name) => `/usr/bin/${name}`).find((path) => existsSync(path))
}

function installBrowser(): string | undefined {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return undefined
  const aptGet = (...args: string[]) =>
    spawnSync('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } })
  aptGet('update')
  for (const name of PACKAGES) {
    aptGet('install', '-y', '--no-install-recommends', name)
    const installed = findBrowser()
    if (installed !== undefined) return installed
  }
  return undefined
}
