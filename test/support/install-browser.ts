import { existsSync } from 'node:fs'
import { loadInstallPolicy } from '../../src/config.ts'
import { lastLines, runCommand } from '../../src/local/embedded/run-command.ts'

/**
 * Debian's packages of Chromium, whose programs have the names of the packages. The first package
 * cannot open a window and needs half of the processor time.
 */
const PACKAGES = ['chromium-headless-shell', 'chromium']

/** The path of the system's Chromium; undefined if there is none. */
export function findBrowser(): string | undefined {
  return PACKAGES.map((name) => `/usr/bin/${name}`).find((path) => existsSync(path))
}

/** How long a step of the installation may take, milliseconds. */
const STEP_MS_MAX = 5 * 60_000

/**
 * Installs Chromium if it is missing, and if that needs no question (as root on a Debian). A run of
 * tests does it once, when Redis is installed, because a second `apt-get` at the same time fails.
 * The tests that run meanwhile come first.
 */
export async function installBrowser(print: (text: string) => void): Promise<void> {
  if (findBrowser() !== undefined || loadInstallPolicy() === 'no') return
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return
  print(`Installing ${PACKAGES[0]} for the tests of pages …`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const aptGet = (...args: string[]) =>
    runCommand('nice', ['apt-get', '-o', 'DPkg::Lock::Timeout=60', ...args], { timeoutMs: STEP_MS_MAX, env })
  // An old package list may be good enough, so a failed update is ignored.
  await aptGet('update')
  let problem = ''
  for (const name of PACKAGES) {
    const { output } = await aptGet('install', '-y', '--no-install-recommends', name)
    if (findBrowser() !== undefined) return
    problem ||= lastLines(output, 3)
  }
  print(`Tests of pages are skipped, because Chromium cannot be installed: ${problem}`)
}
