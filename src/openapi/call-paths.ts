import type { Api, ApiEndpoint, Catalog, ParameterSchema } from '../catalog/catalog.ts'
import { CALL_CODES, errorResponses } from './error-responses.ts'
import { camel, pascal } from './operation-id.ts'
import { type JsonSchema, type NamedSchemas, nameSchema, toDocumentSchema } from './schemas.ts'

/** Where the proxy route is registered; the document writes it out per endpoint instead. */
export const CALL_ROUTE = '/v1/call/*'

/** The headers by which a caller chooses how a call is answered. */
const CALL_HEADERS: JsonSchema[] = [
  { $ref: '#/components/parameters/Prefer' },
  { $ref: '#/components/parameters/GatewayResponse' },
  { $ref: '#/components/parameters/GatewayScenario' },
]
const SECURITY = [{ apiKey: [] }, { bearer: [] }]

/** The data of any endpoint. */
const CALL_DATA: JsonSchema = {
  type: 'object',
  additionalProperties: true,
  description: 'As the path of the endpoint itself says',
}

/** Tag of an API's operations. */
export const apiTag = (api: Api): string => api.upstream.displayName

/** Every endpoint of every API as a path of its own, and the generic route. */
export function callPaths(catalog: Catalog, named: NamedSchemas): Record<string, JsonSchema> {
  const paths: Record<string, JsonSchema> = {}
  for (const api of catalog.values()) {
    for (const endpoint of api.endpoints.values()) {
      paths[`/v1/call/${api.slug}${endpoint.path}`] = { get: endpointOperation(api, endpoint, named) }
    }
  }
  paths['/v1/call/{apiSlug}/{endpoint}'] = genericPath(catalog, named)
  return paths
}

/** The error answers of all calls, as `components.responses`. */
export function callErrorComponents(named: NamedSchemas): Record<string, JsonSchema> {
  const responses = Object.entries(errorResponses(CALL_CODES, true, named))
  return Object.fromEntries(responses.map(([status, response]) => [`CallError${status}`, response]))
}

function errorReferences(): Record<string, JsonSchema> {
  const statuses = Object.keys(errorResponses(CALL_CODES, true, new Map()))
  return Object.fromEntries(statuses.map((status) => [status, { $ref: `#/components/responses/CallError${status}` }]))
}

function endpointOperation(api: Api, { path, endpoint, parameters }: ApiEndpoint, named: NamedSchemas): JsonSchema {
  const { upstream } = api
  const data = nameSchema(pascal([api.slug, path]), toDocumentSchema(endpoint.data, named), named)
  const given = endpoint.example.parameters as Record<string, unknown>
  const attribution = upstream.terms.attribution === undefined ? '' : ` ${upstream.terms.attribution}.`
  return {
    operationId: camel([api.slug, path]),
    tags: [apiTag(api)],
    summary: endpoint.description.replace(/\.$/, ''),
    description: `${endpoint.description} Needs the tier ${api.tierRequired}.${attribution} ${upstream.terms.summary}`,
    security: SECURITY,
    parameters: [
      ...parameters.map(({ name, schema, required }) => queryParameter(name, schema, required, given[name], named)),
      ...CALL_HEADERS,
    ],
    responses: {
      200: success(data, { recorded: { value: { status: 'success', data: endpoint.example.data } } }),
      202: { $ref: '#/components/responses/CallAccepted' },
      ...errorReferences(),
    },
  }
}

function queryParameter(
  name: string,
  schema: ParameterSchema,
  required: boolean,
  example: unknown,
  named: NamedSchemas,
): JsonSchema {
  const { description, ...rest } = toDocumentSchema(schema, named)
  return {
    name,
    in: 'query',
    required,
    ...(description === undefined ? {} : { description }),
    schema: rest,
    ...(example === undefined ? {} : { example }),
  }
}

function success(data: JsonSchema, examples: JsonSchema): JsonSchema {
  const header = (name: string) => ({ $ref: `#/components/headers/${name}` })
  return {
    description: 'The answer of the upstream API, mapped',
    headers: {
      'X-Request-Id': header('RequestId'),
      'X-Call-Id': header('CallId'),
      RateLimit: header('RateLimit'),
      'RateLimit-Policy': header('RateLimitPolicy'),
      'Server-Timing': header('ServerTiming'),
      'Cache-Status': header('CacheStatus'),
      'X-Gateway-Mode': header('GatewayMode'),
    },
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['status', 'data'],
          properties: { status: { type: 'string', const: 'success' }, data },
        },
        examples,
      },
    },
  }
}

function genericPath(catalog: Catalog, named: NamedSchemas): JsonSchema {
  const [first] = catalog.values()
  const endpoint = first && [...first.endpoints.values()][0]
  const anything = nameSchema('CallData', CALL_DATA, named)
  const example = endpoint ? { recorded: { value: { status: 'success', data: endpoint.endpoint.example.data } } } : {}
  const responses = {
    200: success(anything, example),
    202: { $ref: '#/components/responses/CallAccepted' },
    ...errorReferences(),
  }
  const names = [...new Set([...catalog.values()].flatMap((api) => [...api.endpoints.keys()]))].map((path) =>
    path.slice(1),
  )
  const shared = { tags: ['Calls'], security: SECURITY, responses }
  return {
    parameters: [
      {
        name: 'apiSlug',
        in: 'path',
        required: true,
        description: 'An api_name of the catalog',
        schema: { type: 'string', enum: [...catalog.keys()] },
      },
      {
        name: 'endpoint',
        in: 'path',
        required: true,
        description: 'An endpoint of that API, without the slash',
        schema: { type: 'string', enum: names.sort() },
      },
      ...CALL_HEADERS,
    ],
    get: {
      ...shared,
      operationId: 'call',
      summary: 'Call any endpoint with query parameters',
      description: 'Declared parameters are checked; undeclared ones are forwarded as given.',
      parameters: [
        {
          name: 'parameters',
          in: 'query',
          description: 'The parameters of the endpoint',
          style: 'form',
          explode: true,
          schema: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean'] } },
        },
      ],
    },
    post: {
      ...shared,
      operationId: 'callWithBody',
      summary: 'Call any endpoint with parameters in a JSON body',
      description: 'The members of the body are the parameters of the endpoint.',
      requestBody: {
        required: false,
        content: {
          'application/json': {
            schema: { type: 'object', additionalProperties: true },
            ...(endpoint ? { example: endpoint.endpoint.example.parameters } : {}),
          },
        },
      },
    },
  }
}

/** The answers of a route that answers in its own form, or as a call would have. */
export function withCallOutcome(own: Record<string, JsonSchema>, named: NamedSchemas): Record<string, JsonSchema> {
  const data = nameSchema('CallData', CALL_DATA, named)
  const responses: Record<string, JsonSchema> = { ...own, 200: success(data, {}) }
  for (const [status, response] of Object.entries(errorResponses(CALL_CODES, true, named))) {
    const both = [own[status], response].flatMap((answer) => jsonMedia(answer) ?? [])
    responses[status] = {
      ...response,
      content: {
        'application/json': {
          schema: both.length === 1 ? both[0]?.schema : { anyOf: both.map(({ schema }) => schema) },
          examples: Object.assign({}, ...both.map(({ examples }) => examples)),
        },
      },
    }
  }
  return responses
}

function jsonMedia(response: JsonSchema | undefined): { schema: JsonSchema; examples: JsonSchema } | undefined {
  return (response?.content as Record<string, { schema: JsonSchema; examples: JsonSchema }> | undefined)?.[
    'application/json'
  ]
}
