import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Api, type Catalog, createApi, isOwn, loadOwnUpstreams } from '../catalog/catalog.ts'
import { type Config, ConfigError } from '../config.ts'
import type { LaneDirectory } from '../fleet/lane-directory.ts'
import type { Log } from '../log.ts'
import { digestOf } from '../telemetry/known-apis.ts'
import type { SettingsSync } from './upstream-settings.ts'

/**
 * How often a process checks the files of the folder, milliseconds. It reads files only if they
 * have not changed since the previous check, so that it never reads a half-written file.
 */
const LOOK_EVERY_MS = 500

/**
 * How long a process waits for all workers to load the new documents, milliseconds. After this it
 * serves them even if some worker has not.
 */
const WORKERS_MS_MAX = 30_000

export interface OwnApisDeps {
  config: Pick<Config, 'upstreams'>
  log: Pick<Log, 'info' | 'error' | 'warn'>
  catalog: Catalog
  settings: Pick<SettingsSync, 'apply'>
  /** Absent in a worker, which serves new documents at once. */
  lanes?: Pick<LaneDirectory, 'areLoaded'>
}

/** Documents that were read and are not served yet. */
interface ReadApis {
  apis: Api[]
  readAt: number
}

/**
 * Keeps a process's own APIs equal to the files of the operator's folder. The documents are checked
 * together: if one has an error, the process keeps the previous set. Workers load changes first,
 * and keep removed APIs for calls that are still running.
 */
export class OwnApis {
  readonly #deps: OwnApisDeps
  readonly #listeners = new Set<() => void>()
  readonly #closing = new AbortController()
  #looking: Promise<void> | undefined
  /** The state of the files at the last check, and when they were last read. */
  #seen: string | undefined
  #read: string | undefined
  #next: ReadApis | undefined

  constructor(deps: OwnApisDeps) {
    this.#deps = deps
  }

  /** Begins to check the folder, if one is set. */
  open(): void {
    const { ownFolder } = this.#deps.config.upstreams
    if (ownFolder !== undefined) this.#looking = this.#lookOnAndOn(ownFolder)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#looking
  }

  /** Calls `listener` after own APIs were added, changed or removed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  async #lookOnAndOn(folder: string): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await this.#look(folder).catch((error) =>
        this.#deps.log.warn({ err: error }, 'failed to look for changes of UPSTREAMS_DIR'),
      )
      await delay(LOOK_EVERY_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  async #look(folder: string): Promise<void> {
    const files = await describeFiles(folder)
    const isSettled = files === this.#seen
    this.#seen = files
    if (isSettled && files !== this.#read) {
      this.#read = files
      this.#next = await this.#readFolder(folder)
    }
    const next = this.#next
    if (next && (this.#isLoadedByWorkers(next) || performance.now() - next.readAt > WORKERS_MS_MAX)) this.#serve(next)
  }

  /** @returns undefined if the documents have errors, or have not changed */
  async #readFolder(ownFolder: string): Promise<ReadApis | undefined> {
    const { config, log, catalog } = this.#deps
    const { bySlug, isOperatorNamed, builtIn } = config.upstreams
    try {
      const apis = [...(await loadOwnUpstreams({ ownFolder, builtIn }))].map(([slug, upstream]) => {
        const before = catalog.get(slug)
        // An unchanged API stays the same object, so that everything derived from it stays valid.
        if (before && digestOf(before) === digestOf({ upstream })) return before
        return createApi(slug, upstream, { settings: bySlug, isOperatorNamed })
      })
      catalog.refused = []
      const before = ownOf(catalog)
      if (apis.length === before.length && apis.every((api) => before.includes(api))) return undefined
      return { apis, readAt: performance.now() }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      catalog.refused = error.message.split('\n').slice(1)
      log.error(
        { errors: catalog.refused },
        'refused the changed documents of UPSTREAMS_DIR; the own APIs stay as they were',
      )
      return undefined
    }
  }

  #isLoadedByWorkers({ apis }: ReadApis): boolean {
    const { catalog, lanes } = this.#deps
    return lanes?.areLoaded(apis.filter((api) => catalog.get(api.slug) !== api)) ?? true
  }

  #serve({ apis }: ReadApis): void {
    const { log, catalog, settings } = this.#deps
    this.#next = undefined
    const before = new Map(ownOf(catalog).map((api) => [api.slug, api]))
    for (const api of apis) if (before.get(api.slug) !== api) settings.apply(api)
    catalog.replaceOwn(apis)
    const slugs = (of: Api[]): string[] => of.map(({ slug }) => slug)
    const added = slugs(apis.filter(({ slug }) => !before.has(slug)))
    const changed = slugs(apis.filter((api) => before.has(api.slug) && before.get(api.slug) !== api))
    const left = [...before.keys()].filter((slug) => !catalog.has(slug))
    log.info({ added, changed, left }, 'own APIs were updated from UPSTREAMS_DIR')
    for (const listener of this.#listeners) listener()
  }
}

function ownOf(catalog: Catalog): Api[] {
  return [...catalog.values()].filter(isOwn)
}

/**
 * A text that changes when the files of a folder change, or that says why the folder cannot be
 * read.
 */
async function describeFiles(folder: string): Promise<string> {
  const codeOf = (error: unknown): string => String(Object(error).code)
  const names = await readdir(folder).catch(codeOf)
  if (typeof names === 'string') return names
  const files = names.filter((name) => /\.(yaml|yml|json)$/.test(name)).sort()
  const described = files.map(async (name) => {
    const info = await stat(join(folder, name)).catch(codeOf)
    return typeof info === 'string' ? [name, info] : [name, info.ino, info.size, info.mtimeMs]
  })
  return JSON.stringify(await Promise.all(described))
}
