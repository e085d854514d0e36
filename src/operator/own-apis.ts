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
 * How often a process looks whether files of the folder changed, milliseconds. It reads files that
 * have not changed since the look before, so that it reads no file that is being written.
 */
const LOOK_EVERY_MS = 500

/**
 * How long a process waits until all workers have loaded the documents that it has read,
 * milliseconds. Then it serves them even if a worker cannot.
 */
const WORKERS_MS_MAX = 30_000

export interface OwnApisDeps {
  config: Pick<Config, 'upstreams'>
  log: Pick<Log, 'info' | 'error' | 'warn'>
  catalog: Catalog
  settings: Pick<SettingsSync, 'apply'>
  /** Absent in a worker, which serves what it has read at once. */
  lanes?: Pick<LaneDirectory, 'areLoaded'>
}

/** Documents that were read and are not served yet. */
interface ReadApis {
  apis: Api[]
  readAt: number
}

/**
 * Keeps the own APIs of a process as the files of the operator's folder say. A set of documents is
 * checked as a whole: with an error in one of them, the process goes on with the set before.
 * Workers come first, and keep what left for calls that are on their way.
 */
export class OwnApis {
  readonly #deps: OwnApisDeps
  readonly #listeners = new Set<() => void>()
  readonly #closing = new AbortController()
  #looking: Promise<void> | undefined
  /** The files at the last look, and when they were read last. */
  #seen: string | undefined
  #read: string | undefined
  #next: ReadApis | undefined

  constructor(deps: OwnApisDeps) {
    this.#deps = deps
  }

  /** Begins to look, if there is a folder. */
  open(): void {
    const { ownFolder } = this.#deps.config.upstreams
    if (ownFolder !== undefined) this.#looking = this.#lookOnAndOn(ownFolder)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#looking
  }

  /** Calls back after own APIs came, changed or left. */
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

  /** @returns undefined if the documents have errors, or are the same as before */
  async #readFolder(ownFolder: string): Promise<ReadApis | undefined> {
    const { config, log, catalog } = this.#deps
    const { bySlug, isOperatorNamed, builtIn } = config.upstreams
    try {
      const apis = [...(await loadOwnUpstreams({ ownFolder, builtIn }))].map(([slug, upstream]) => {
        const before = catalog.get(slug)
        // What is the same stays the same object, with all that was made of it.
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
      log.error({ errors: catalog.refused }, 'refused the changed documents of UPSTREAMS_DIR; the APIs stay as before')
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
    log.info({ added, changed, left }, 'own APIs follow UPSTREAMS_DIR')
    for (const listener of this.#listeners) listener()
  }
}

function ownOf(catalog: Catalog): Api[] {
  return [...catalog.values()].filter(isOwn)
}

/** Describes the files of a folder as they are now, or why the folder cannot be read. */
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
