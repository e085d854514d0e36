import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { type Cacheable, createCacheable } from '../http/cacheable.ts'

/** The portal's scripts, styles and pictures, read once. Their addresses change with their content. */
export interface Assets {
  files: Map<string, Cacheable>
  /** Names the content of all files: modules import each other by relative addresses and so belong together. */
  version: string
  /** Address of a file, `/assets/Zt3k…/app.js`. */
  href: (name: string) => string
}

const FOLDER = new URL('./assets/', import.meta.url)

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml; charset=utf-8',
}

export function loadAssets(): Assets {
  const files = new Map<string, Cacheable>()
  for (const name of readdirSync(FOLDER).sort()) {
    const type = TYPES[extname(name)]
    if (type) files.set(name, createCacheable(readFileSync(new URL(name, FOLDER)), type))
  }
  const hash = createHash('sha256')
  for (const [name, file] of files) hash.update(name).update(file.hash)
  const version = hash.digest('base64url').slice(0, 12)
  return {
    files,
    version,
    href: (name) => {
      if (!files.has(name)) throw new Error(`the portal has no file ${name}`)
      return `/assets/${version}/${name}`
    },
  }
}
