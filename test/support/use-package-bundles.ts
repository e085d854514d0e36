import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { BUNDLES_FILE, installedPackages, type PackageBundles } from './package-bundles.ts'

/**
 * Loaded before the modules of a test process: if there are bundles of the installed packages, the
 * process imports the bundles.
 */
function readBundles(): Map<string, string> {
  try {
    const { installed, urls }: PackageBundles = JSON.parse(readFileSync(BUNDLES_FILE, 'utf8'))
    if (installed === installedPackages()) return new Map(Object.entries(urls))
  } catch {
    // If there are no bundles, the process imports the packages themselves.
  }
  return new Map()
}

const PROJECT = new URL('../../', import.meta.url).href

const bundles = readBundles()
if (bundles.size > 0) {
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      // A file of ours is where its specifier says. Node would read the disk, and look in the
      // folders above for a package.json, which is a tenth of the cost of a start.
      if (specifier.startsWith('.') && specifier.endsWith('.ts') && context.parentURL?.startsWith(PROJECT))
        return { url: new URL(specifier, context.parentURL).href, format: 'module-typescript', shortCircuit: true }
      const resolved = nextResolve(specifier, context)
      const url = bundles.get(resolved.url)
      return url === undefined ? resolved : { ...resolved, url, format: 'module' }
    },
  })
}
