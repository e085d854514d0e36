import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * Every process of the gateway imports packages of some 1,500 files, and reading them is more than
 * half of the cost of its start. A test run starts hundreds of processes. So it first bundles each
 * package into one file, with the same code in the installed version. `use-package-bundles.ts`
 * makes a process import the bundles. Outside tests there are no bundles.
 */

/**
 * The packages with many files that are bundled. If several of them import a module, the module is
 * in one shared file, so it exists once.
 */
const BUNDLED = [
  ...['typebox', 'typebox/schema', 'typebox/compile', 'typebox/value', 'kysely', 'kysely/migration', 'fastify'],
  ...['bullmq', 'ioredis', 'pg', 'undici', 'jose', 'prom-client', 'oidc-provider', '@modelcontextprotocol/server'],
  ...['api', 'core', 'resources', 'sdk-trace', 'exporter-trace-otlp-http'].map((name) => `@opentelemetry/${name}`),
]

/**
 * Packages that stay as they are: machine code, and packages that look for files beside their own.
 */
const NOT_BUNDLED = ['argon2', 'msgpackr-extract', 'pg-native', 'pino']

const MODULES = fileURLToPath(new URL('../../node_modules/', import.meta.url))
const FOLDER = join(MODULES, '.cache', 'test-packages')

const DAY_MS = 86_400_000

/** The file that says which bundles are in use. */
export const BUNDLES_FILE = join(FOLDER, 'bundles.json')

export interface PackageBundles {
  /** Identifies the packages that the bundles were made of. */
  installed: string
  /** The text of this source file when the bundles were made. */
  recipe: string
  /** URL of the bundle by the URL of the file that the package's name means. */
  urls: Record<string, string>
}

/**
 * Identifies the installed packages by npm's list of them and by their folder. (The time of the
 * list would not do, because checkouts may share the file by hard links. Nor would the list alone,
 * because bundles name files by their whole paths.)
 */
export function installedPackages(): string {
  return createHash('sha1')
    .update(MODULES)
    .update(readFileSync(join(MODULES, '.package-lock.json')))
    .digest('hex')
}

/** Bundles the packages. If bundles of the installed packages exist already, it uses them. */
export async function bundlePackages(): Promise<void> {
  const installed = installedPackages()
  const [recipe, text] = await Promise.all([
    readFile(new URL(import.meta.url), 'utf8'),
    readFile(BUNDLES_FILE, 'utf8').catch(() => '{}'),
  ])
  const known: Partial<PackageBundles> = JSON.parse(text)
  if (known.installed === installed && known.recipe === recipe) return
  await mkdir(FOLDER, { recursive: true })
  // If two runs begin at once, they write two folders. Both folders are right.
  const folder = await mkdtemp(join(FOLDER, 'bundles-'))
  const bundles: PackageBundles = { installed, recipe, urls: await writeBundles(folder) }
  await writeFile(`${folder}.json`, JSON.stringify(bundles))
  await rename(`${folder}.json`, BUNDLES_FILE)
  await removeOld()
}

/** A run that has started may use earlier bundles. No run lasts a day. */
async function removeOld(): Promise<void> {
  for (const name of await readdir(FOLDER)) {
    const path = join(FOLDER, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }))
    if (name.startsWith('bundles-') && Date.now() - mtimeMs > DAY_MS) await rm(path, { recursive: true, force: true })
  }
}

/** @returns {@link PackageBundles.urls} */
async function writeBundles(folder: string): Promise<Record<string, string>> {
  const { build } = await import('esbuild')
  const urls: Record<string, string> = {}
  const entryPoints: Record<string, string> = {}
  for (const specifier of BUNDLED) {
    const name = specifier.replaceAll(/[@/]/g, '_')
    const entry = join(folder, `${name}.entry.mjs`)
    // Exports are found by importing the module, because Node can tell what a CommonJS module
    // exports and a bundler cannot.
    const names = Object.keys(await import(specifier)).filter((key) => key !== 'module.exports')
    await writeFile(entry, `export { ${names.join(', ')} } from '${specifier}'\n`)
    entryPoints[name] = entry
    urls[import.meta.resolve(specifier)] = pathToFileURL(join(folder, `${name}.mjs`)).href
  }
  await build({
    entryPoints,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    external: NOT_BUNDLED,
    // Errors are told apart by the names of their classes.
    keepNames: true,
    banner: {
      js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
    },
    logLevel: 'error',
  })
  return urls
}
