import { GatewayError } from '../errors.ts'
import type { Api, Catalog } from './catalog.ts'
import { offeredApis } from './catalog-state.ts'
import { nearestName } from './nearest-name.ts'
import { rankApis } from './search.ts'

/** The refusal if a path names an unknown API. It suggests the nearest name. */
export function apiNotFound(apis: Iterable<Api>, slug: string): GatewayError {
  const meant = nearestName(
    slug,
    [...apis].map((api) => api.slug),
  )
  if (meant === undefined) return new GatewayError('API_NOT_FOUND')
  return new GatewayError('API_NOT_FOUND', { message: `There is no API with this name; did you mean ${meant}?` })
}

/**
 * The refusal if a path names an unknown endpoint. It lists the endpoints of the API.
 *
 * @param name undefined if it cannot be an endpoint
 */
export function endpointNotFound({ slug, endpoints }: Api, name: string | undefined): GatewayError {
  const paths = [...endpoints.keys()]
  const meant = name === undefined ? undefined : nearestName(name, paths)
  const all = `it has ${paths.join(', ')}.`
  const words = meant === undefined ? all : `did you mean ${meant}?${paths.length > 1 ? ` I${all.slice(1)}` : ''}`
  return new GatewayError('ENDPOINT_NOT_FOUND', { message: `The API ${slug} has no such endpoint; ${words}` })
}

/** The refusal for a model that names an unknown API. It lists the nearest names. */
export function unknownApi(catalog: Catalog, slug: string): GatewayError {
  const offered = offeredApis(catalog)
  const near = rankApis(offered, slug).slice(0, 3)
  const names = (near.length > 0 ? near : offered.slice(0, 5)).map((api) => api.slug)
  return new GatewayError('API_NOT_FOUND', {
    message: `There is no API with the name ${JSON.stringify(slug.slice(0, 60))}.`,
    hint:
      near.length > 0
        ? `Choose one of the nearest names, ${names.join(', ')}, or find one with search_apis`
        : `Choose an api that search_apis lists, such as ${names.join(', ')}`,
  })
}
