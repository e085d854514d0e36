/**
 * Fallback sources, which answer if the source of an API fails. Each has its own name, caps, health
 * score and breaker.
 */
import type { Api } from './catalog.ts'
import type { Endpoint } from './endpoint.ts'
import type { Upstream } from './upstream.ts'

/** Suffix that makes the name of a fallback source from the slug of its API. No slug has a dot. */
export const FALLBACK = '.fallback'

/**
 * The slug of the API that a source serves. The probes of the source are in the queue of this API.
 */
export function apiSlugOf(source: string): string {
  return source.endsWith(FALLBACK) ? source.slice(0, -FALLBACK.length) : source
}

/** The slug by which settings name a fallback source: `UPSTREAM_DICTIONARY_FALLBACK_URL`. */
export function fallbackVariables(slug: string): string {
  return `${slug}-fallback`
}

/** An API or a fallback source, by its name. */
export function sourceNamed<Source extends { fallback: Source | undefined }>(
  catalog: ReadonlyMap<string, Source>,
  name: string,
): Source | undefined {
  return name.endsWith(FALLBACK) ? catalog.get(apiSlugOf(name))?.fallback : catalog.get(name)
}

/** The APIs of a catalog and their fallback sources. */
export function sourcesOf<Source extends { fallback: Source | undefined }>(
  catalog: Pick<ReadonlyMap<string, Source>, 'values'>,
): Source[] {
  return [...catalog.values()].flatMap((api) => (api.fallback ? [api, api.fallback] : [api]))
}

/**
 * The fallback source that may answer a call, and its endpoint. Undefined if the call wants a raw
 * answer, which has the form of the first source, or if it has undeclared parameters, which are
 * meant for the first source.
 */
export function fallbackFor(
  { fallback }: Api,
  { endpoint, raw, extra }: { endpoint: string; raw: boolean; extra: readonly unknown[] },
): { source: Api; endpoint: Endpoint } | undefined {
  const found = raw || extra.length > 0 ? undefined : fallback?.endpoints.get(endpoint)
  return fallback && found && { source: fallback, endpoint: found.declaration }
}

/** The name of a source for people: the host of its website. */
export function sourceName({ terms, baseUrl }: Pick<Upstream, 'terms' | 'baseUrl'>): string {
  return new URL(terms.url ?? baseUrl).hostname
}

/**
 * An upstream's fallback source, as an upstream. Members that the source does not declare come from
 * the upstream.
 */
export function fallbackUpstream(upstream: Upstream): Upstream | undefined {
  const { fallback } = upstream
  if (!fallback) return undefined
  const { displayName, category, description, tags, tierRequired, mayLack } = upstream
  const endpoints = Object.entries(fallback.endpoints).flatMap(([path, own]) => {
    const endpoint = upstream.endpoints[path]
    if (!endpoint) return []
    const { parameters, data, complete, cache } = endpoint
    const shared = { description: endpoint.description, parameters, data }
    return [[path, { ...shared, ...(complete && { complete }), ...(cache && { cache }), ...own }] as const]
  })
  return {
    ...{ displayName, category, description, tags, tierRequired, ...(mayLack && { mayLack }) },
    ...fallback,
    endpoints: Object.fromEntries(endpoints),
  }
}
