import { GatewayError } from '../errors.ts'
import type { Catalog } from './catalog.ts'
import { offeredApis } from './catalog-state.ts'
import { rankApis } from './search.ts'

/** The refusal of a name that is not in the catalog, with the nearest ones that are. */
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
