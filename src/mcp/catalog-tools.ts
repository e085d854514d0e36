import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import Type, { type Static } from 'typebox'
import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import type { Allowance, Quote } from '../catalog/catalog-schema.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { unknownApi } from '../catalog/unknown-api.ts'
import { GatewayError } from '../errors.ts'
import { adaptTo } from './adapt-arguments.ts'
import { CALL_HINTS, DATA_META, objectSchema } from './api-tools.ts'
import type { SendCall } from './call-client.ts'
import { About, type BatchedCall, callAsTool, callManyAsTool, type ResultForm } from './call-tool.ts'
import { DescribeOutput, describeApi, type Observer } from './describe-api.ts'
import { checkArguments, closedObject, invalidArguments } from './invalid-arguments.ts'
import { SearchInput, SearchOutput, searchApis } from './search-apis.ts'
import { type Selection, SelectionInput, unknownField } from './selection.ts'

const DescribeInput = closedObject({
  api: Type.String({ description: 'Name from search_apis, such as weather' }),
  endpoint: Type.Optional(
    Type.String({ description: 'Describe only this endpoint, in full, such as /current; absent: all endpoints' }),
  ),
})
const CallInput = closedObject({
  api: Type.String({ description: 'Name from search_apis, such as weather' }),
  endpoint: Type.String({ description: 'Path from describe_api, such as /current' }),
  parameters: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'The parameters that describe_api lists for the endpoint',
    }),
  ),
  ...SelectionInput,
})
const CallOutput = Type.Object({
  api: Type.String(),
  endpoint: Type.String(),
  ...About,
  data: Type.Record(Type.String(), Type.Unknown(), { description: 'As describe_api lists them for the endpoint' }),
})

const BatchInput = closedObject({
  calls: Type.Array(CallInput, { minItems: 1, maxItems: 20, description: 'Identical calls are made once' }),
  take: Type.Optional(
    Type.Enum(['all', 'fit'], {
      default: 'all',
      description: 'all: an error if your limits do not allow all calls; fit: makes as many calls as your limits allow',
    }),
  ),
})
const BatchOutput = Type.Object({
  results: Type.Array(Type.Object({}, { additionalProperties: true }), {
    description:
      'One result for each call, in order: index, status, and data, or an error with a hint and when to retry; mode, note and truncated as in call_api',
  }),
  ok: Type.Integer(),
  failed: Type.Integer(),
  charged: Type.Integer({ description: 'How many calls of the monthly quota were used' }),
  deduplicated: Type.Integer(),
})

const LOCAL_HINTS = { ...CALL_HINTS, openWorldHint: false }

/** The tools for all APIs. A tool for each endpoint would be more tools than clients accept. */
const CATALOG_TOOLS: Tool[] = [
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
      'Endpoints of one API with their parameters, data and an example, and the state of the API: health, plan, limits, terms, and in `now` what would happen to a call at this moment, such as how long it would wait. Counts against no limit of the plan. Read it before the first call_api.',
    inputSchema: objectSchema(DescribeInput),
    outputSchema: objectSchema(DescribeOutput),
    annotations: LOCAL_HINTS,
  },
  {
    name: 'call_api',
    title: 'Call an API',
    description: 'Calls an endpoint and returns its data. The hint of a failure states what to change.',
    inputSchema: objectSchema(CallInput),
    outputSchema: objectSchema(CallOutput),
    annotations: CALL_HINTS,
    _meta: DATA_META,
  },
  {
    name: 'call_apis',
    title: 'Call many APIs',
    description:
      'Makes up to 20 calls at once, of one or many APIs. Each call has its own data or error in the results.',
    inputSchema: objectSchema(BatchInput),
    outputSchema: objectSchema(BatchOutput),
    annotations: CALL_HINTS,
    _meta: DATA_META,
  },
]

/** Listed for credentials that may write, if the catalog has an endpoint that writes. */
const CHANGE_TOOL: Tool = {
  name: 'change_api',
  title: 'Change something through an API',
  description:
    'Calls an endpoint that changes something at its source; describe_api says which endpoints do. OUTCOME_UNKNOWN means that the change may have happened: check before you call again.',
  inputSchema: objectSchema(CallInput),
  outputSchema: objectSchema(CallOutput),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  _meta: DATA_META,
}

/** The tools that a caller sees. */
export function catalogTools({ catalog, mayWrite }: Pick<CatalogToolDeps, 'catalog' | 'mayWrite'>): Tool[] {
  const hasWrites = () => offeredApis(catalog).some(({ endpoints }) => [...endpoints.values()].some(isWrite))
  return mayWrite && hasWrites() ? [...CATALOG_TOOLS, CHANGE_TOOL] : CATALOG_TOOLS
}

const isWrite = ({ declaration: endpoint }: ApiEndpoint): boolean => (endpoint.effect ?? 'read') !== 'read'

/**
 * The refusal of the wrong tool. Reading and writing have different tools, because clients run
 * reading tools without asking their user.
 */
function wrongTool({ slug }: Api, { path }: ApiEndpoint, tool: 'call_api' | 'change_api'): GatewayError {
  const [does, other] = tool === 'call_api' ? ['changes something', 'change_api'] : ['changes nothing', 'call_api']
  return new GatewayError('VALIDATION_ERROR', {
    message: `${slug}${path} ${does}, and ${tool} does not make such calls.`,
    hint:
      tool === 'call_api' ? `Use ${other}, which the server lists for keys that may change something` : `Use ${other}`,
  })
}

const INPUTS = {
  change_api: CallInput,
  search_apis: SearchInput,
  describe_api: DescribeInput,
  call_api: CallInput,
  call_apis: BatchInput,
}

/**
 * What calls with the credential of the message would meet now; undefined if it cannot be read in
 * time. It leaves out the health of the source, which the status of the API shows.
 */
export interface Quotes {
  allowance: () => Promise<Allowance | undefined>
  of: (api: Api, endpoints: ApiEndpoint[]) => Promise<Omit<Quote, 'health'> | undefined>
}

/** What the tools need besides their arguments. */
export interface CatalogToolDeps extends Observer {
  catalog: Catalog
  /** Whether the caller may call endpoints that change something. */
  mayWrite: boolean
  quotes: Quotes
  baseUrl: string
  send: SendCall
  /** Sends many calls at once and waits for all of them. */
  sendBatch: SendCall
}

/**
 * Runs a tool; undefined if there is no tool with this name.
 *
 * @throws GatewayError for invalid arguments
 */
export async function runCatalogTool(
  name: string,
  given: unknown,
  deps: CatalogToolDeps,
): Promise<CallToolResult | undefined> {
  if (!Object.hasOwn(INPUTS, name)) return undefined
  const schema = INPUTS[name as keyof typeof INPUTS]
  const input: unknown = checkArguments(schema, adaptTo(schema, given))
  const { catalog, baseUrl, send } = deps
  if (name === 'search_apis') {
    const now = await deps.quotes.allowance()
    return structured({ ...(now && { now }), ...searchApis(input as Static<typeof SearchInput>, deps) })
  }
  if (name === 'call_apis') return await callApis(input as Static<typeof BatchInput>, deps)
  const { api: slug, endpoint: path } = input as { api: string; endpoint?: string }
  const api = catalog.get(slug)
  if (!api || api.isSwitchedOff) throw inOneName(catalog, slug) ?? unknownApi(catalog, slug)
  const endpoint = path === undefined ? undefined : endpointOf(api, path)
  if (path !== undefined && !endpoint) throw unknownEndpoint(api)
  if (!endpoint || name === 'describe_api') {
    const now = await deps.quotes.of(api, endpoint ? [endpoint] : [...api.endpoints.values()])
    return structured({ ...(now && { now }), ...describeApi(api, deps, { baseUrl, endpoint }) })
  }
  if (isWrite(endpoint) !== (name === 'change_api')) {
    throw wrongTool(api, endpoint, name === 'change_api' ? name : 'call_api')
  }
  const { api: _, endpoint: __, parameters = {}, ...selection } = input as Static<typeof CallInput>
  checkFields(selection, endpoint)
  return await callAsTool(send, { api, endpoint, parameters, selection }, catalogForm(slug, endpoint.path))
}

/** The form of a result of call_api, of a task too. `endpoint` is the path as in the catalog. */
export function catalogForm(api: string, endpoint: string): ResultForm {
  // The note comes before the data, because models read in order.
  return (data, { truncated, ...about }) => ({ api, endpoint, ...about, data, ...(truncated && { truncated }) })
}

async function callApis(
  { calls, take = 'all' }: Static<typeof BatchInput>,
  { catalog, sendBatch }: CatalogToolDeps,
): Promise<CallToolResult> {
  for (const { api: slug, endpoint: path } of calls) {
    const api = catalog.get(slug)
    const endpoint = api && endpointOf(api, path)
    if (api && endpoint && isWrite(endpoint)) throw wrongTool(api, endpoint, 'call_api')
  }
  const batched = calls.map((call, index): BatchedCall => {
    const { api: slug, endpoint: path, parameters = {}, ...selection } = call
    const api = catalog.get(slug)
    const endpoint = api && endpointOf(api, path)
    if (endpoint) checkFields(selection, endpoint, `calls.${index}.`)
    return { api: slug, path, endpoint, parameters, selection }
  })
  return await callManyAsTool(sendBatch, { calls: batched, take })
}

/** Finds an endpoint by its path, with or without the first slash. */
function endpointOf({ endpoints }: Api, path: string): ApiEndpoint | undefined {
  return endpoints.get(`/${path.replace(/^\/+/, '')}`)
}

function checkFields(selection: Selection, { declaration: endpoint }: ApiEndpoint, place = ''): void {
  const unknown = unknownField(selection, endpoint.data)
  if (unknown !== undefined) throw invalidArguments(unknown.replace('Argument ', `Argument ${place}`))
}

function structured(content: Record<string, unknown>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(content) }], structuredContent: content }
}

/**
 * The refusal if one argument holds an API and an endpoint; undefined if the argument does not
 * begin with an API.
 */
function inOneName(catalog: Catalog, name: string): GatewayError | undefined {
  const [, slug = '', endpoint = ''] = /^\/?([^/]+)(\/.+)$/.exec(name) ?? []
  const api = catalog.get(slug)
  if (!api || api.isSwitchedOff) return undefined
  const path = endpointOf(api, endpoint)?.path
  return new GatewayError('API_NOT_FOUND', {
    message: 'The argument api must be only the name of an API.',
    hint: `Send api=${slug} and ${path === undefined ? 'the endpoint as an argument of its own' : `endpoint=${path}`}`,
  })
}

function unknownEndpoint({ slug, endpoints }: Api): GatewayError {
  const paths = [...endpoints.keys()].join(', ')
  return new GatewayError('ENDPOINT_NOT_FOUND', {
    message: `The API ${slug} has no such endpoint.`,
    hint: `Choose one of ${paths}`,
  })
}
