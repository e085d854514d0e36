import Type, { type Static } from 'typebox'
import { type Api, type Catalog, isCallable } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { rankApis } from '../catalog/search.ts'
import { BriefApiState, briefApiStateOf, type Observer } from './describe-api.ts'
import { closedObject } from './invalid-arguments.ts'

export const SearchInput = closedObject({
  query: Type.Optional(Type.String({ maxLength: 200, description: 'What you need, in a few words; absent: all APIs' })),
  category: Type.Optional(Type.String({ maxLength: 60, description: 'Only this category' })),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 50, default: 10, description: 'Largest number of APIs in the answer' }),
  ),
})
export const SearchOutput = Type.Object({
  total: Type.Integer({ description: 'Number of APIs that match; the answer lists the first' }),
  categories: Type.Optional(
    Type.Array(Type.String(), { description: 'All categories, if no query was given or nothing matches' }),
  ),
  hint: Type.Optional(Type.String({ description: 'What to do if nothing matches' })),
  now: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Calls left: minuteLeft, monthLeft, inFlightLeft',
    }),
  ),
  apis: Type.Array(
    Type.Object({
      api: Type.String({ description: 'Name for describe_api and call_api' }),
      name: Type.String(),
      category: Type.String(),
      description: Type.String(),
      ...BriefApiState,
      endpoints: Type.Array(Type.Object({ path: Type.String(), description: Type.String() })),
    }),
  ),
})
/** The APIs that a caller may call and that fit its query, the best first. */
export function searchApis(
  { query = '', category, limit = 10 }: Static<typeof SearchInput>,
  deps: Observer & { catalog: Catalog },
): Static<typeof SearchOutput> {
  // APIs that would refuse the call are left out, because the operator disabled them or the user
  // did not allow them.
  const isAllowed = ({ slug }: Api) => deps.allowedApis?.includes(slug) ?? true
  const callable = offeredApis(deps.catalog).filter((api) => isCallable(api) && isAllowed(api))
  const named = category === undefined ? undefined : folded(category)
  const ofCategory = callable.filter(({ upstream }) => named === undefined || folded(upstream.category) === named)
  const found = rankApis(offeredApis(deps.catalog), query, (api) => ofCategory.includes(api))
  return {
    total: found.length,
    // Categories are listed only if they help, because the model pays for each word.
    ...(query.trim() === '' || found.length === 0
      ? { categories: [...new Set(callable.map((api) => api.upstream.category))].sort() }
      : {}),
    ...(found.length === 0 ? { hint: nothingHint(ofCategory.length, callable.length) } : {}),
    apis: found.slice(0, limit).map((api) => ({
      api: api.slug,
      name: api.upstream.displayName,
      category: api.upstream.category,
      description: api.upstream.description,
      ...briefApiStateOf(api, deps),
      endpoints: [...api.endpoints.values()].map(({ path, declaration: endpoint }) => ({
        path,
        description: endpoint.description,
      })),
    })),
  }
}

/** A category in any letter case, because the document of an own API may use capitals. */
const folded = (category: string): string => category.trim().toLowerCase()

function nothingHint(inCategory: number, inAll: number): string {
  if (inAll === 0) return 'No API can be called with this credential now.'
  if (inCategory === 0) return 'There is no such category. Choose one of categories, or leave category out.'
  return inCategory === inAll
    ? `Nothing matches. Leave query out to list all ${inAll} APIs.`
    : 'Nothing matches. Leave query or category out.'
}
