import { readFileSync, statSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { BUNDLES_FILE, INSTALLED_FILE, type PackageBundles } from './package-bundles.ts'

/**
 * Loaded before the modules of a test process: where there are bundles of the installed packages,
 * it imports these.
 */
function readBundles(): Map<string, string> {
  try {
    const { installedAt, urls }: PackageBundles = JSON.parse(readFileSync(BUNDLES_FILE, 'utf8'))
    if (statSync(INSTALLED_FILE).mtimeMs === installedAt) return new Map(Object.entries(urls))
  } catch {
    // None were made: the packages themselves are imported.
  }
  return new Map()
}

const bundles = readBundles()
if (bundles.size > 0) {
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const resolved = nextResolve(specifier, context)
      const url = bundles.get(resolved.url)
      return url === undefined ? resolved : { ...resolved, url, format: 'module' }
    },
  })
}
