import type { ApiEndpoint } from './api-endpoint.ts'
import { type Api, isCallable } from './catalog.ts'
import type { ApiEntry } from './catalog-schema.ts'
import { exampleCall } from './example-call.ts'
import { expectation, typeWord } from './parameter-words.ts'

/** An API as the catalog lists it, with its health score. */
export function toEntry(api: Api, score: number): ApiEntry {
  const { upstream } = api
  const endpoints = [...api.endpoints.values()]
  return {
    api_name: api.slug,
    display_name: upstream.displayName,
    category: upstream.category,
    description: upstream.description,
    tags: upstream.tags,
    free: api.tierRequired === 'developer',
    tier_required: api.tierRequired,
    enabled: isCallable(api),
    waiting_for: waitingFor(api),
    health_score: shownScore(api, score),
    example_query: endpoints[0] ? exampleCall(api.slug, endpoints[0]) : null,
    endpoints: endpoints.map(toCatalogEndpoint),
  }
}

/** The health score to show: 0 if the API answers no calls, even if its source is healthy. */
export function shownScore(api: Api, score: number): number {
  return answersLiveCalls(api) ? score : 0
}

/** The state to show: Down if the API answers no calls, otherwise the state of its source. */
export function shownStatus<Status extends string>(api: Api, status: Status): Status | 'Down' {
  return answersLiveCalls(api) ? status : 'Down'
}

/**
 * Whether the API answers live calls, if necessary with a key of the caller. It answers none if it
 * lacks the operator's key, or if operators have paused it or switched it off.
 */
function answersLiveCalls(api: Api): boolean {
  return isCallable(api) && api.pausedMode === undefined
}

function waitingFor(api: Api): string | null {
  if (api.enabled) return null
  return api.needsCallerKey ? 'A key of your own for this API' : "The operator's key for this API"
}

function toCatalogEndpoint({
  path,
  method,
  declaration: endpoint,
  parameters,
}: ApiEndpoint): ApiEntry['endpoints'][number] {
  const params = parameters.map(({ name, aliases, schema, required }) => {
    const description = [schema.description?.replace(/\.$/, ''), expectation(schema, true).replace('it must be ', '')]
      .filter(Boolean)
      .join('; ')
    const fallback = schema.default === undefined ? {} : { default: schema.default }
    const otherNames = aliases.length === 0 ? {} : { aliases: [...aliases] }
    return [name, { type: typeWord(schema), required, description, ...otherNames, ...fallback }]
  })
  const { description, effect, example } = endpoint
  return {
    path,
    method,
    description,
    params: Object.fromEntries(params),
    ...(effect === undefined || effect === 'read' ? {} : { effect }),
    ...(example.origin === undefined ? {} : { example: example.origin }),
  }
}
