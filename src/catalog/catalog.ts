import { readdir } from 'node:fs/promises'
import { type Config, ConfigError, type UpstreamSettings } from '../config.ts'
import { type ApiEndpoint, createEndpoint } from './api-endpoint.ts'
import { FALLBACK, fallbackUpstream, fallbackVariables, sourceNamed } from './fallback.ts'
import type { Caps, Tier, Upstream } from './upstream.ts'

/**
 * APIs that left or changed and that a catalog still knows, because calls of them may be on their
 * way.
 */
const EARLIER_MAX = 20

/**
 * Every API of the catalog, by slug: the upstreams' files under the settings of this deployment.
 * Own APIs come, change and leave while a process runs, all in one step.
 */
export class Catalog extends Map<string, Api> {
  /** The last is the latest. */
  #earlier: Api[] = []
  /** Errors of the documents that this process did not take over, a line each. */
  refused: readonly string[] = []

  /** Also the APIs that left or changed. What operators set holds for them too. */
  known(): Api[] {
    return [...this.values(), ...this.#earlier]
  }

  /** The API as a call was checked by: a document may have left or changed since. */
  checkedBy({ slug, document }: { slug: string; document?: string | undefined }): Api | undefined {
    const isIt = (api: Api | undefined): boolean => api?.slug === slug && api.upstream.own?.digest === document
    const current = this.get(slug)
    return document === undefined || isIt(current) ? current : this.#earlier.findLast(isIt)
  }

  /** An API or a fallback source by its name, even if the API left. */
  source(name: string): Api | undefined {
    return sourceNamed(this, name) ?? this.#earlier.findLast(({ slug }) => slug === name)
  }

  /**
   * Whether a request of a call must not be sent twice. Fails closed: an endpoint that this process
   * does not know counts as an endpoint that changes data.
   */
  mustNotRepeat(call: { slug: string; endpoint: string }): boolean {
    const apis = this.known().filter(({ slug }) => slug === call.slug)
    const endpoints = apis.flatMap(({ endpoints }) => endpoints.get(call.endpoint) ?? [])
    return endpoints.length === 0 || endpoints.some(({ declaration }) => declaration.effect === 'once')
  }

  /** Puts own APIs in the place of the own APIs before, after the built-in ones. */
  replaceOwn(apis: readonly Api[]): void {
    const before = [...this.values()].filter(isOwn)
    const left = before.filter((api) => !apis.includes(api))
    this.#earlier = [...this.#earlier, ...left].slice(-EARLIER_MAX)
    for (const { slug } of before) this.delete(slug)
    for (const api of apis) this.set(api.slug, api)
  }
}

/** Whether an operator added the API by a document. */
export function isOwn({ upstream }: Pick<Api, 'upstream'>): boolean {
  return upstream.own !== undefined
}

/** `Retry-After` of a paused API, milliseconds: nobody knows when it is resumed. */
export const PAUSED_RETRY_MS = 30_000

/**
 * What of an address the catalog has: `-` for another slug, and undefined for another endpoint.
 * What is counted by API gets no names that callers make up.
 */
export function knownTarget(catalog: Catalog, slug: string, path: string): { slug: string; endpoint?: string } {
  const api = catalog.get(slug)
  if (!api) return { slug: '-' }
  return api.endpoints.has(path) ? { slug, endpoint: path } : { slug }
}

/**
 * What callers of a paused upstream get: their calls wait until it is resumed, or are refused at
 * once.
 */
export type PausedMode = 'hold' | 'refuse'

type ConfiguredUpstream = UpstreamSettings & { isOperatorNamed: boolean }

export interface Api {
  slug: string
  upstream: Upstream
  /** Where calls go: the file's address or `UPSTREAM_<SLUG>_URL`. */
  baseUrl: string
  /** Whether the operator chose the address; only such an address may be private. */
  isBaseUrlConfigured: boolean
  /** The operator's key for the upstream, if there is a key. */
  key: string | undefined
  caps: Caps
  /**
   * What the source asks, and the caps that a `CONTACT` would give; undefined if the operator names
   * one or it changes nothing.
   */
  lackedContact: { rule: string; caps: Caps } | undefined
  /** Where calls with a caller's own key go, and the caps of each such key. */
  forCallerKeys: { baseUrl: string; caps: Caps }
  tierRequired: Tier
  /** Whether calls without a key of the caller's can be made. */
  enabled: boolean
  /** Calls need a key of the caller's own. */
  needsCallerKey: boolean
  /** Operators switched it off: no key helps. */
  isSwitchedOff: boolean
  /** Operators stored a key that the secrets of this process do not open: calls go without it. */
  isKeyUnreadable: boolean
  /** Operators paused its queue; undefined while it runs. */
  pausedMode: PausedMode | undefined
  /** Settings of the environment, on which the settings of operators lie. */
  configured: ConfiguredUpstream
  endpoints: Map<string, ApiEndpoint>
  /**
   * The source that answers if this source fails. It is no API of its own: the catalog does not
   * list it.
   */
  fallback: Api | undefined
}

/**
 * What operators changed of an upstream while it runs; what is absent stays as the file and the
 * environment say.
 */
export interface OperatorSettings {
  enabled?: boolean
  tierRequired?: Tier
  caps?: Partial<Caps>
  key?: string
  /** There is a key, and no secret of this process opens it. */
  isKeyUnreadable?: boolean
  pausedMode?: PausedMode
}

const FOLDER = new URL('../upstreams/', import.meta.url)

/**
 * Reads the folder of upstream files: a file's name is its slug.
 *
 * @param only the slugs that are wanted; absent: all
 */
export async function loadUpstreams(only?: readonly string[]): Promise<Map<string, Upstream>> {
  const upstreams = new Map<string, Upstream>()
  for (const slug of await builtInSlugs()) {
    if (only && !only.includes(slug)) continue
    const module: { default: Upstream } = await import(new URL(`${slug}.ts`, FOLDER).href)
    upstreams.set(slug, module.default)
  }
  return upstreams
}

/** Slugs of the upstreams of this project, in the order of the catalog. */
export async function builtInSlugs(): Promise<string[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.ts'))
  return files.map((file) => file.slice(0, -'.ts'.length)).sort()
}

/** What the catalog of a deployment is made of. */
export type CatalogOptions = Pick<Config['upstreams'], 'isOperatorNamed'> &
  Partial<Pick<Config['upstreams'], 'ownFolder' | 'builtIn'>>

/**
 * Builds the catalog of this deployment: the upstreams of this project that the operator wants,
 * then the upstreams of the operator's folder.
 *
 * @param options.isOperatorNamed `CONTACT` says how to reach the operator
 * @throws ConfigError for a slug that is none, and with a line for each error of the operator's
 *   documents
 */
export async function loadCatalog(
  settings: Config['upstreams']['bySlug'],
  { isOperatorNamed, ownFolder, builtIn }: CatalogOptions = { isOperatorNamed: false },
): Promise<Catalog> {
  const slugs = await builtInSlugs()
  const unknown = builtIn?.find((slug) => !slugs.includes(slug))
  if (unknown) throw new ConfigError(`BUILTIN_UPSTREAMS names ${unknown}, and there is no built-in API with this name`)
  const upstreams = await loadUpstreams(builtIn)
  const own = ownFolder === undefined ? [] : await loadOwnUpstreams({ ownFolder, builtIn })
  const catalog = new Catalog()
  for (const [slug, upstream] of [...upstreams, ...own]) {
    catalog.set(slug, createApi(slug, upstream, { settings, isOperatorNamed }))
  }
  return catalog
}

/**
 * What the operator's folder holds now.
 *
 * @throws ConfigError with a line for each error of the documents
 */
export async function loadOwnUpstreams({
  ownFolder,
  builtIn,
}: {
  ownFolder: string
  builtIn: CatalogOptions['builtIn']
}): Promise<Map<string, Upstream>> {
  // Imported by processes that need it alone, because the reader of YAML is a large package.
  const { loadFolder } = await import('./openapi/load-folder.ts')
  return await loadFolder(ownFolder, { slugs: await builtInSlugs(), upstreams: await loadUpstreams(builtIn) })
}

/** An upstream under the settings of the environment. */
export function createApi(
  slug: string,
  upstream: Upstream,
  { settings, isOperatorNamed }: Pick<CatalogOptions, 'isOperatorNamed'> & { settings: Config['upstreams']['bySlug'] },
): Api {
  const create = (name: string, source: Upstream, variables: string): Api => {
    const configured = { ...settings.get(variables), isOperatorNamed }
    const endpoints = Object.entries(source.endpoints).map(([path, endpoint]): [string, ApiEndpoint] => [
      path,
      createEndpoint(path, endpoint),
    ])
    // An operator who chose the address of the first source must choose the address of the second:
    // calls may not go elsewhere.
    const mayFallBack = configured.url === undefined || settings.get(fallbackVariables(name))?.url !== undefined
    const fallback = mayFallBack ? fallbackUpstream(source) : undefined
    return {
      slug: name,
      upstream: source,
      configured,
      endpoints: new Map(endpoints),
      fallback: fallback && create(`${name}${FALLBACK}`, fallback, fallbackVariables(name)),
      ...mergeSettings(source, configured, {}),
    }
  }
  return create(slug, upstream, slug)
}

/**
 * Puts operators' settings in force for an API of this process, in place of the settings before;
 * the only way it changes.
 */
export function applySettings(api: Api, settings: OperatorSettings): void {
  Object.assign(api, mergeSettings(api.upstream, api.configured, settings))
  const { enabled, pausedMode } = settings
  const ofBoth = { ...(enabled === undefined ? {} : { enabled }), ...(pausedMode === undefined ? {} : { pausedMode }) }
  if (api.fallback) applySettings(api.fallback, ofBoth)
}

/** Whether live calls can be made at all, with a key of the caller's if a key is needed. */
export function isCallable({ enabled, needsCallerKey, isSwitchedOff }: Api): boolean {
  return !isSwitchedOff && (enabled || needsCallerKey)
}

/** The API as a call with a caller's own key sees it: its address and caps for keys. */
export function withCallerKey(api: Api): Api {
  return { ...api, ...api.forCallerKeys }
}

/** What an upstream's file, the environment and the operators say together; the later wins. */
function mergeSettings(
  upstream: Upstream,
  configured: ConfiguredUpstream,
  settings: OperatorSettings,
): Omit<Api, 'slug' | 'upstream' | 'configured' | 'endpoints' | 'fallback'> {
  const { credential } = upstream
  const key = credential && (settings.key ?? configured.key)
  const isKeyed = key !== undefined
  const capsOver = (caps: Caps): Caps => ({ ...caps, ...configured.caps, ...settings.caps })
  const forCallerKeys = {
    baseUrl: configured.url ?? credential?.baseUrl ?? upstream.baseUrl,
    caps: capsOver(credential?.caps ?? upstream.caps),
  }
  const isSwitchedOff = settings.enabled === false
  const lacksKey = credential?.required === true && !isKeyed
  const { contact } = upstream
  const lacksContact = contact !== undefined && !configured.isOperatorNamed && !isKeyed
  const isForCallerKeysAlone = credential?.accessMode === 'byok_required'
  return {
    baseUrl: isKeyed ? forCallerKeys.baseUrl : (configured.url ?? upstream.baseUrl),
    isBaseUrlConfigured: configured.url !== undefined || upstream.own?.mayBePrivate === true,
    key,
    caps: isKeyed ? forCallerKeys.caps : capsOver((lacksContact ? contact.capsWithout : undefined) ?? upstream.caps),
    lackedContact: lacksContact ? { rule: contact.rule, caps: capsOver(upstream.caps) } : undefined,
    forCallerKeys,
    tierRequired: settings.tierRequired ?? upstream.tierRequired,
    enabled: !isSwitchedOff && !lacksKey && !isForCallerKeysAlone,
    needsCallerKey: isForCallerKeysAlone || (lacksKey && settings.enabled === true),
    isSwitchedOff,
    isKeyUnreadable: settings.isKeyUnreadable === true,
    pausedMode: settings.pausedMode,
  }
}
