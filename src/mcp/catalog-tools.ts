import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/schema'
import { type Api, type Catalog, isOpen } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { rankApis } from '../catalog/search.ts'
import { unknownApi } from '../catalog/unknown-api.ts'
import { GatewayError } from '../errors.ts'
import { sentence, type Violation, violationPlace, violationWords } from '../http/violation-words.ts'
import { CALL_HINTS, objectSchema } from './api-tools.ts'
import type { SendCall } from './call-client.ts'
import { callAsTool, callManyAsTool, refusal } from './call-tool.ts'
import { DescribeOutput, describeApi, type Observer, Standing, standingOf } from './describe-api.ts'
import { violationOf } from './violation-of.ts'

/** Of a member that it does not know, a tool would drop what the model meant by it. */
const closedObject = <T extends Type.TProperties>(members: T) => Type.Object(members, { additionalProperties: false })

const SearchInput = closedObject({
  query: Type.Optional(
    Type.String({ maxLength: 200, description: 'What you need, in a few words; all APIs when left out' }),
  ),
  category: Type.Optional(Type.String({ maxLength: 60, description: 'Only this category' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 10, description: 'APIs in the answer' })),
})
const SearchOutput = Type.Object({
  total: Type.Integer({ description: 'APIs that match, of which the first are listed' }),
  categories: Type.Array(Type.String()),
  hint: Type.Optional(Type.String({ description: 'What to do where nothing matches' })),
  apis: Type.Array(
    Type.Object({
      api: Type.String({ description: 'Name for describe_api and call_api' }),
      name: Type.String(),
      category: Type.String(),
      description: Type.String(),
      ...Standing,
      endpoints: Type.Array(Type.Object({ path: Type.String(), description: Type.String() })),
    }),
  ),
})
const DescribeInput = closedObject({
  api: Type.String({ description: 'As search_apis names it, such as weather' }),
  endpoint: Type.Optional(
    Type.String({ description: 'Only this endpoint, in full, such as /current; all of them when left out' }),
  ),
})
const CallInput = closedObject({
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

const BatchInput = closedObject({
  calls: Type.Array(CallInput, { minItems: 1, maxItems: 20, description: 'Equal calls are made once' }),
  take: Type.Optional(
    Type.Enum(['all', 'fit'], {
      default: 'all',
      description: 'all: an error when not all calls fit into your limits; fit: as many as fit are made',
    }),
  ),
})
const BatchOutput = Type.Object({
  results: Type.Array(Type.Object({}, { additionalProperties: true }), {
    description: 'One for each call, in order: index, status, and data or error with a hint and when to retry',
  }),
  ok: Type.Integer(),
  failed: Type.Integer(),
  charged: Type.Integer({ description: 'Units of the monthly quota that the calls cost' }),
  deduplicated: Type.Integer(),
})

const LOCAL_HINTS = { ...CALL_HINTS, openWorldHint: false }

/** The tools that reach every API; one tool per endpoint would be more than clients take. */
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
      'Endpoints of one API with their parameters, data and an example, and how it stands: health, plan, limits, terms. Read it before the first call_api.',
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
  {
    name: 'call_apis',
    title: 'Call many APIs',
    description: 'Makes up to 20 calls at once, of one or many APIs. Each has its own data or error in the results.',
    inputSchema: objectSchema(BatchInput),
    outputSchema: objectSchema(BatchOutput),
    annotations: CALL_HINTS,
  },
]

const inputs = {
  search_apis: Compile(SearchInput),
  describe_api: Compile(DescribeInput),
  call_api: Compile(CallInput),
  call_apis: Compile(BatchInput),
}

/** What the tools need to know besides their input. */
export interface CatalogToolDeps extends Observer {
  catalog: Catalog
  baseUrl: string
  send: SendCall
  /** Sends many calls at once, and waits for all of them. */
  sendBatch: SendCall
}

/** Runs one of them; undefined when there is none of this name. */
export async function runCatalogTool(
  name: string,
  given: unknown,
  deps: CatalogToolDeps,
): Promise<CallToolResult | undefined> {
  if (!Object.hasOwn(inputs, name)) return undefined
  const input = withoutNulls(given)
  const { catalog, baseUrl, send, sendBatch } = deps
  const validator = inputs[name as keyof typeof inputs]
  if (!validator.Check(input)) {
    return refusal(invalid(violationOf(validator, input)), baseUrl)
  }
  if (name === 'search_apis') return structured(searchApis(input as Static<typeof SearchInput>, deps))
  if (name === 'call_apis') return await callManyAsTool(sendBatch, input as Static<typeof BatchInput>)
  const { api: slug, endpoint: path } = input as { api: string; endpoint?: string }
  const api = catalog.get(slug)
  if (!api || api.isSwitchedOff) return refusal(unknownApi(catalog, slug), baseUrl)
  const endpoint = path === undefined ? undefined : api.endpoints.get(`/${path.replace(/^\/+/, '')}`)
  if (path !== undefined && !endpoint) return refusal(unknownEndpoint(api), baseUrl)
  if (name === 'describe_api') return structured(describeApi(api, deps, { baseUrl, endpoint }))
  const { endpoint: called, parameters = {} } = input as Static<typeof CallInput>
  return await callAsTool(send, { slug, endpoint: called, parameters }, (data) => ({
    api: slug,
    endpoint: called,
    data,
  }))
}

/** Models write null for what they leave out; what is null among the parameters of a call is the call's own affair. */
function withoutNulls(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  const members = Object.entries(input).filter(([, value]) => value !== null)
  return Object.fromEntries(
    members.map(([name, value]) => [name, name === 'calls' && Array.isArray(value) ? value.map(withoutNulls) : value]),
  )
}

function structured(content: Record<string, unknown>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(content) }], structuredContent: content }
}

function invalid(violation: Violation): GatewayError {
  const name = violationPlace(violation)
  const subject = name === undefined ? 'The arguments are invalid: it' : `Argument ${name}`
  return new GatewayError('INVALID_PARAMETER', {
    message: sentence(`${subject} ${violationWords(violation)}`),
    tokens: name === undefined ? {} : { param: name },
  })
}

function unknownEndpoint({ slug, endpoints }: Api): GatewayError {
  const paths = [...endpoints.keys()].join(', ')
  return new GatewayError('ENDPOINT_NOT_FOUND', {
    message: `The API ${slug} has no such endpoint.`,
    hint: `Choose one of ${paths}`,
  })
}

function nothingHint(inCategory: number, inAll: number): string {
  if (inAll === 0) return 'No API can be called with this credential now.'
  if (inCategory === 0) return 'There is no such category. Choose one of categories, or leave category out.'
  return inCategory === inAll
    ? `Nothing matches. Leave query out to list all ${inAll} APIs.`
    : 'Nothing matches. Leave query or category out.'
}

function searchApis(
  { query = '', category, limit = 10 }: Static<typeof SearchInput>,
  deps: CatalogToolDeps,
): Static<typeof SearchOutput> {
  // A model is not sent where its call would be refused: by the operator, or by the user who connected it.
  const isAllowed = ({ slug }: Api) => deps.allowedApis?.includes(slug) ?? true
  const callable = offeredApis(deps.catalog).filter((api) => isOpen(api) && isAllowed(api))
  const named = category?.toLowerCase()
  const ofCategory = callable.filter((api) => named === undefined || api.upstream.category === named)
  const found = rankApis(ofCategory, query)
  return {
    total: found.length,
    categories: [...new Set(callable.map((api) => api.upstream.category))].sort(),
    ...(found.length === 0 ? { hint: nothingHint(ofCategory.length, callable.length) } : {}),
    apis: found.slice(0, limit).map((api) => ({
      api: api.slug,
      name: api.upstream.displayName,
      category: api.upstream.category,
      description: api.upstream.description,
      ...standingOf(api, deps),
      endpoints: [...api.endpoints.values()].map(({ path, endpoint }) => ({ path, description: endpoint.description })),
    })),
  }
}
