import { readdir } from 'node:fs/promises'
import { type Config, ConfigError, type UpstreamSettings } from '../config.ts'
import { type ApiEndpoint, createEndpoint } from './api-endpoint.ts'
import { FALLBACK, fallbackUpstream, fallbackVariables, sourceNamed } from './fallback.ts'
import type { Caps, Tier, Upstream } from './upstream.ts'

/**
 * How many removed or changed APIs a catalog remembers, because calls of them may still be running.
 */
const EARLIER_MAX = 20

/**
 * Every API by slug: the upstreams' files with the settings of this deployment. Own APIs (documents
 * of the operator) can be added, changed and removed while a process runs, all in one step.
 */
export class Catalog extends Map<string, Api> {
  /** The last item is the latest. */
  #earlier: Api[] = []
  /** Errors of documents that this process did not load, one line each. */
  refused: readonly string[] = []

  /**
   * All APIs, including APIs that were removed or changed. Settings of operators hold for them too.
   */
  known(): Api[] {
    return [...this.values(), ...this.#earlier]
  }

  /**
   * The version of the API with which a call was checked. The document may have been removed or
   * changed since.
   */
  checkedBy({ slug, document }: { slug: string; document?: string | undefined }): Api | undefined {
    const isIt = (api: Api | undefined): boolean => api?.slug === slug && api.upstream.own?.digest === document
    const current = this.get(slug)
    return document === undefined || isIt(current) ? current : this.#earlier.findLast(isIt)
  }

  /** An API or a fallback source by its name, including APIs that were removed. */
  source(name: string): Api | undefined {
    return this.get(name) ?? sourceNamed(this, name) ?? this.#earlier.findLast(({ slug }) => slug === name)
  }

  /**
   * Whether a request of a call must not be sent twice. Fails closed: if this process does not know
   * the endpoint, it assumes that the endpoint changes data.
   */
  mustNotRepeat(call: { slug: string; endpoint: string }): boolean {
    const apis = this.known().filter(({ slug }) => slug === call.slug)
    const endpoints = apis.flatMap(({ endpoints }) => endpoints.get(call.endpoint) ?? [])
    return endpoints.length === 0 || endpoints.some(({ declaration }) => declaration.effect === 'once')
  }

  /** Replaces all own APIs. They follow the built-in APIs. */
  replaceOwn(apis: readonly Api[]): void {
    const before = [...this.values()].filter(isOwn)
    const left = before.filter((api) => !apis.includes(api))
    this.#earlier = [...this.#earlier, ...left].slice(-EARLIER_MAX)
    for (const { slug } of before) this.delete(slug)
    for (const api of apis) this.set(api.slug, api)
  }
}

/** Whether the operator added the API by a document. */
export function isOwn({ upstream }: Pick<Api, 'upstream'>): boolean {
  return upstream.own !== undefined
}

/** `Retry-After` of a paused API, milliseconds. Nobody knows when the operator will resume it. */
export const PAUSED_RETRY_MS = 30_000

/**
 * The slug and endpoint to count for an address. An unknown slug is counted as `-` and an unknown
 * endpoint as undefined, so that no metric contains names that callers made up.
 */
export function knownTarget(catalog: Catalog, slug: string, path: string): { slug: string; endpoint?: string } {
  const api = catalog.get(slug)
  if (!api) return { slug: '-' }
  return api.endpoints.has(path) ? { slug, endpoint: path } : { slug }
}

/**
 * What happens to calls of a paused upstream: they wait until it is resumed, or are refused at
 * once.
 */
export type PausedMode = 'hold' | 'refuse'

type ConfiguredUpstream = UpstreamSettings & { isOperatorNamed: boolean }

export interface Api {
  slug: string
  upstream: Upstream
  /** The address to which calls go: the address of the file or of `UPSTREAM_<SLUG>_URL`. */
  baseUrl: string
  /** Whether the operator chose the address; only such an address may be private. */
  isBaseUrlConfigured: boolean
  /** The operator's key for the upstream; undefined if the operator has given none. */
  key: string | undefined
  caps: Caps
  /**
   * What the source asks of clients without a contact, and the caps that `CONTACT` would give.
   * Undefined if the operator has set `CONTACT` or a key, or if the source has no such rule.
   */
  missingContact: { rule: string; caps: Caps } | undefined
  /** Address and caps for calls with a caller's own key. Each key has these caps. */
  forCallerKeys: { baseUrl: string; caps: Caps }
  tierRequired: Tier
  /** Whether calls can be made without a key of the caller. */
  enabled: boolean
  /** Whether calls need a key of the caller. */
  needsCallerKey: boolean
  /** Whether operators switched the API off. Then a key does not help. */
  isSwitchedOff: boolean
  /**
   * Whether the operators stored a key that this process cannot decrypt. Calls then go without a
   * key.
   */
  isKeyUnreadable: boolean
  /** How operators paused the API; undefined while it runs. */
  pausedMode: PausedMode | undefined
  /** The settings of the environment, which settings of operators override. */
  configured: ConfiguredUpstream
  endpoints: Map<string, ApiEndpoint>
  /** The source that answers if this source fails. The catalog does not list it as an API. */
  fallback: Api | undefined
}

/**
 * What operators changed while the gateway runs. Absent members keep the value of the file and the
 * environment.
 */
export interface OperatorSettings {
  enabled?: boolean
  tierRequired?: Tier
  caps?: Partial<Caps>
  key?: string
  /** Whether a key is stored that no secret of this process can decrypt. */
  isKeyUnreadable?: boolean
  pausedMode?: PausedMode
}

const FOLDER = new URL('../upstreams/', import.meta.url)

/**
 * Reads the folder of upstream files. The name of a file is its slug.
 *
 * @param only the slugs to load; absent: all
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

/** Slugs of the built-in upstreams, in the order of the catalog. */
export async function builtInSlugs(): Promise<string[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.ts'))
  return files.map((file) => file.slice(0, -'.ts'.length)).sort()
}

/** The options from which a catalog is built. */
type CatalogOptions = Pick<Config['upstreams'], 'isOperatorNamed'> &
  Partial<Pick<Config['upstreams'], 'ownFolder' | 'builtIn'>>

/**
 * Builds the catalog of this deployment: the upstreams of this project that the operator wants,
 * then the upstreams of the operator's folder.
 *
 * @param options.isOperatorNamed whether `CONTACT` says how to reach the operator
 * @throws ConfigError for a slug that does not exist, or with a line for each error in the
 *   operator's documents
 */
export async function loadCatalog(
  settings: Config['upstreams']['bySlug'],
  { isOperatorNamed, ownFolder, builtIn }: CatalogOptions = { isOperatorNamed: false },
): Promise<Catalog> {
  const slugs = await builtInSlugs()
  const unknown = builtIn?.find((slug) => !slugs.includes(slug))
  if (unknown) throw new ConfigError(`BUILTIN_UPSTREAMS names ${unknown}, which is not a built-in API`)
  const upstreams = await loadUpstreams(builtIn)
  const own = ownFolder === undefined ? [] : await loadOwnUpstreams({ ownFolder, builtIn })
  const catalog = new Catalog()
  for (const [slug, upstream] of [...upstreams, ...own]) {
    catalog.set(slug, createApi(slug, upstream, { settings, isOperatorNamed }))
  }
  return catalog
}

/**
 * Reads the operator's folder of documents.
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
  // Imported only if needed, because the YAML parser is a large package.
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
    // If the operator set the address of the first source, the fallback needs an address from the
    // operator too. Otherwise calls would go to a place that the operator did not choose.
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
 * Applies the settings of operators to an API of this process, in place of earlier settings.
 * Nothing else changes an API.
 */
export function applySettings(api: Api, settings: OperatorSettings): void {
  Object.assign(api, mergeSettings(api.upstream, api.configured, settings))
  const { enabled, pausedMode } = settings
  const ofBoth = { ...(enabled === undefined ? {} : { enabled }), ...(pausedMode === undefined ? {} : { pausedMode }) }
  if (api.fallback) applySettings(api.fallback, ofBoth)
}

/** Whether live calls are possible at all, if necessary with a key of the caller. */
export function isCallable({ enabled, needsCallerKey, isSwitchedOff }: Api): boolean {
  return !isSwitchedOff && (enabled || needsCallerKey)
}

/** The API for a call with a caller's own key: with the address and caps for such keys. */
export function withCallerKey(api: Api): Api {
  return { ...api, ...api.forCallerKeys }
}

/** Merges the upstream's file, the environment and the settings of operators. Later values win. */
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
    missingContact: lacksContact ? { rule: contact.rule, caps: capsOver(upstream.caps) } : undefined,
    forCallerKeys,
    tierRequired: settings.tierRequired ?? upstream.tierRequired,
    enabled: !isSwitchedOff && !lacksKey && !isForCallerKeysAlone,
    needsCallerKey: isForCallerKeysAlone || (lacksKey && settings.enabled === true),
    isSwitchedOff,
    isKeyUnreadable: settings.isKeyUnreadable === true,
    pausedMode: settings.pausedMode,
  }
}
