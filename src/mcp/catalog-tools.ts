import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { rankApis } from '../catalog/search.ts'
import { GatewayError } from '../errors.ts'
import { CALL_HINTS, objectSchema } from './api-tools.ts'
import type { SendCall } from './call-client.ts'
import { callAsTool, refusal } from './call-tool.ts'

const SearchInput = Type.Object({
  query: Type.Optional(
    Type.String({ maxLength: 200, description: 'What you need, in a few words; all APIs when left out' }),
  ),
  category: Type.Optional(Type.String({ maxLength: 60, description: 'Only this category' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 10, description: 'APIs in the answer' })),
})
const SearchOutput = Type.Object({
  total: Type.Integer({ description: 'APIs that match, of which the first are listed' }),
  categories: Type.Array(Type.String()),
  apis: Type.Array(
    Type.Object({
      api: Type.String({ description: 'Name for describe_api and call_api' }),
      name: Type.String(),
      category: Type.String(),
      description: Type.String(),
      tier_required: Type.String(),
      endpoints: Type.Array(Type.Object({ path: Type.String(), description: Type.String() })),
    }),
  ),
})
const DescribeInput = Type.Object({ api: Type.String({ description: 'As search_apis names it, such as weather' }) })
const DescribeOutput = Type.Object({
  api: Type.String(),
  name: Type.String(),
  description: Type.String(),
  tier_required: Type.String(),
  terms: Type.String(),
  endpoints: Type.Array(
    Type.Object({
      path: Type.String(),
      description: Type.String(),
      parameters: Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema of the parameters' }),
      data: Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema of the data' }),
      example: Type.Object({
        parameters: Type.Record(Type.String(), Type.Unknown()),
        data: Type.Record(Type.String(), Type.Unknown()),
      }),
    }),
  ),
})
const CallInput = Type.Object({
  api: Type.String({ description: 'As search_apis names it, such as weather' }),
  endpoint: Type.String({ description: 'As describe_api names it, such as /current' }),
  parameters: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'The parameters that describe_api lists for the endpoint',
    }),
  ),
})
const CallOutput = Type.Object({
  api: Type.String(),
  endpoint: Type.String(),
  data: Type.Record(Type.String(), Type.Unknown(), { description: 'As describe_api says of the endpoint' }),
})

const LOCAL_HINTS = { ...CALL_HINTS, openWorldHint: false }

/** The three tools that reach every API; one tool per endpoint would be more than clients take. */
export const CATALOG_TOOLS: Tool[] = [
  {
    name: 'search_apis',
    title: 'Search the APIs',
    description: 'Finds data APIs by what they offer: weather, currencies, news, encyclopedia, geocoding and more.',
    inputSchema: objectSchema(SearchInput),
    outputSchema: objectSchema(SearchOutput),
    annotations: LOCAL_HINTS,
  },
  {
    name: 'describe_api',
    title: 'Describe an API',
    description:
      'Endpoints of one API with their parameters, data and a recorded example. Ask before the first call_api.',
    inputSchema: objectSchema(DescribeInput),
    outputSchema: objectSchema(DescribeOutput),
    annotations: LOCAL_HINTS,
  },
  {
    name: 'call_api',
    title: 'Call an API',
    description: 'Calls an endpoint and answers with its data. A failure says in its hint what to change.',
    inputSchema: objectSchema(CallInput),
    outputSchema: objectSchema(CallOutput),
    annotations: CALL_HINTS,
  },
]

const inputs = { search_apis: Compile(SearchInput), describe_api: Compile(DescribeInput), call_api: Compile(CallInput) }

/** Runs one of them; undefined when there is none of this name. */
export async function runCatalogTool(
  name: string,
  input: unknown,
  { catalog, baseUrl, send }: { catalog: Catalog; baseUrl: string; send: SendCall },
): Promise<CallToolResult | undefined> {
  if (!Object.hasOwn(inputs, name)) return undefined
  const validator = inputs[name as keyof typeof inputs]
  if (!validator.Check(input)) {
    const [first] = validator.Errors(input)
    return refusal(invalid(first?.instancePath ?? '', first?.message ?? 'is not valid'), baseUrl)
  }
  if (name === 'search_apis') return structured(searchApis(catalog, input as Static<typeof SearchInput>))
  const { api: slug } = input as { api: string }
  const api = catalog.get(slug)
  if (!api || api.isSwitchedOff) return refusal(unknownApi(catalog, slug), baseUrl)
  if (name === 'describe_api') return structured(describeApi(api))
  const { endpoint, parameters = {} } = input as Static<typeof CallInput>
  return await callAsTool(send, { slug, endpoint }, parameters, (data) => ({ api: slug, endpoint, data }))
}

function structured(content: Record<string, unknown>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(content) }], structuredContent: content }
}

function invalid(place: string, reason: string): GatewayError {
  const name = place.slice(1).replaceAll('/', '.')
  return new GatewayError('INVALID_PARAMETER', {
    message: name === '' ? `The arguments are invalid: ${reason}.` : `Argument ${name} is invalid: ${reason}.`,
    tokens: name === '' ? {} : { param: name },
  })
}

function unknownApi(catalog: Catalog, slug: string): GatewayError {
  const near = rankApis(offeredApis(catalog), slug).slice(0, 3)
  const names = (near.length > 0 ? near : offeredApis(catalog)).map((api) => api.slug)
  return new GatewayError('API_NOT_FOUND', {
    hint: `Choose an api that search_apis lists, such as ${names.slice(0, 5).join(', ')}`,
  })
}

function searchApis(
  catalog: Catalog,
  { query = '', category, limit = 10 }: Static<typeof SearchInput>,
): Static<typeof SearchOutput> {
  const found = rankApis(offeredApis(catalog), query).filter(
    (api) => category === undefined || api.upstream.category === category,
  )
  return {
    total: found.length,
    categories: [...new Set(offeredApis(catalog).map((api) => api.upstream.category))].sort(),
    apis: found.slice(0, limit).map(({ slug, upstream, tierRequired, endpoints }) => ({
      api: slug,
      name: upstream.displayName,
      category: upstream.category,
      description: upstream.description,
      tier_required: tierRequired,
      endpoints: [...endpoints.values()].map(({ path, endpoint }) => ({ path, description: endpoint.description })),
    })),
  }
}

function describeApi({ slug, upstream, tierRequired, endpoints }: Api): Static<typeof DescribeOutput> {
  return {
    api: slug,
    name: upstream.displayName,
    description: upstream.description,
    tier_required: tierRequired,
    terms: [upstream.terms.summary, upstream.terms.attribution].filter(Boolean).join(' '),
    endpoints: [...endpoints.values()].map(({ path, endpoint }) => ({
      path,
      description: endpoint.description,
      parameters: objectSchema(endpoint.parameters),
      data: objectSchema(endpoint.data),
      example: {
        parameters: endpoint.example.parameters as Record<string, unknown>,
        data: endpoint.example.data as Record<string, unknown>,
      },
    })),
  }
}
