import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors.ts'
import { type Cacheable, createCacheable, sendCacheable } from '../http/answer/cacheable.ts'

/**
 * The scripts, styles and pictures that pages load. They are read once and kept compressed. The
 * name of a file is its path below `src`, so that imports between files mean the same in the
 * browser as here.
 */
export interface Assets {
  files: Map<string, Cacheable>
  /**
   * A hash of the content of all files. Modules import each other by relative addresses, so they
   * all share one version.
   */
  version: string
  /** Address of a file, `/assets/Zt3k…/portal/assets/app.js`; it changes with the content. */
  href: (name: string) => string
}

const SRC = new URL('../', import.meta.url)

/** The files that every page may load: the base style and the charts. */
const SHARED = 'browser/'

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml; charset=utf-8',
}

/** If an address contains a hash of the file's content, the answer never changes (RFC 8246). */
const FOREVER = 'max-age=31536000, immutable'

/**
 * Reads the shared files and the files of `paths`, each a folder (`portal/assets/`) or a file
 * (`fleet/words.js`) below `src`.
 */
export function loadAssets(paths: string[]): Assets {
  const files = new Map<string, Cacheable>()
  for (const path of [SHARED, ...paths]) {
    const names = path.endsWith('/') ? readdirSync(new URL(path, SRC)).map((name) => path + name) : [path]
    for (const name of names.sort()) {
      const type = TYPES[extname(name)]
      if (type) files.set(name, createCacheable(readFileSync(new URL(name, SRC)), type))
    }
  }
  for (const [name, source] of [
    ['browser/idiomorph.js', 'idiomorph/dist/idiomorph.esm.js'],
    ['browser/uplot.js', 'uplot/dist/uPlot.esm.js'],
    ['browser/uplot.css', 'uplot/dist/uPlot.min.css'],
  ] as const) {
    const body = readFileSync(createRequire(import.meta.url).resolve(source))
    files.set(name, createCacheable(body, TYPES[extname(name)] ?? ''))
  }
  const hash = createHash('sha256')
  for (const [name, file] of files) hash.update(name).update(file.hash)
  const version = hash.digest('base64url').slice(0, 12)
  return {
    files,
    version,
    href: (name) => {
      if (!files.has(name)) throw new Error(`no page can load ${name}`)
      return `/assets/${version}/${name}`
    },
  }
}

/**
 * Serves the files under `/assets/`. Only files that were read at the start are served, so no
 * address reaches the file system. `scope` is `private` if the files are behind a log-in.
 */
export function serveAssets(app: FastifyInstance, assets: Assets, scope: 'public' | 'private'): void {
  app.get<{ Params: { version: string; '*': string } }>(
    '/assets/:version/*',
    { schema: { hide: true } },
    async (request, reply) => {
      const { version, '*': name } = request.params
      const file = assets.files.get(name)
      if (!file) throw new GatewayError('NOT_FOUND')
      // While nodes of two versions run, a page of one node may load files of the other version.
      // The browser must not keep those files.
      const lifetime = version === assets.version ? `${scope}, ${FOREVER}` : 'no-cache'
      return await sendCacheable(reply, file, lifetime)
    },
  )
}
