import { Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { STATUS_CODES } from '../node-http.ts'
import type { MediaExamples } from './account-examples.ts'
import { apiTags, CALL_ROUTE, CALL_SECURITY, callErrorComponents, endpointPaths } from './call-paths.ts'
import { headers, info, parameters, pendingCall, responses, securitySchemes, tagDescriptions } from './components.ts'
import {
  codesOf,
  errorExamples,
  errorResponses,
  headerReference,
  limitHeaders,
  refusedResponses,
} from './error-responses.ts'
import { type DocumentExamples, documentExamples } from './examples.ts'
import { failureResponse, genericPath, withCallOutcome } from './generic-call.ts'
import { operationId } from './operation-id.ts'
import type { DocumentedRoute } from './route-list.ts'
import { sampleOf } from './sample.ts'
import { type JsonSchema, type NamedSchemas, toDocumentSchema } from './schemas.ts'

/** An OpenAPI 3.1.0 document as a JSON value. */
export interface OpenApiDocument {
  openapi: '3.1.0'
  info: JsonSchema
  servers: { url: string; description: string }[]
  tags: { name: string; description?: string }[]
  /** Groups of tags for Scalar and Redoc. The APIs come first. */
  'x-tagGroups': { name: string; tags: string[] }[]
  paths: Record<string, JsonSchema>
  components: Record<string, JsonSchema>
}

/**
 * Describes the registered routes and the endpoints of the catalog. It uses the schemas that
 * validate requests.
 */
export function createDocument(routes: DocumentedRoute[], known: Catalog, baseUrl: string): OpenApiDocument {
  const catalog = new Catalog(offeredApis(known).map((api) => [api.slug, api]))
  const named: NamedSchemas = new Map([['PendingCall', pendingCall]])
  const examples = documentExamples(catalog, baseUrl)
  const paths: Record<string, JsonSchema> = {}
  for (const route of routes) {
    if (route.hidden || route.url === CALL_ROUTE) continue
    const path = templated(route.url)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, path, { catalog, named, examples }) }
  }
  // This comes after the service's own schemas, so that an own API cannot take one of their names.
  const generic = { '/v1/call/{apiSlug}/{endpoint}': genericPath(catalog, named, examples.call) }
  const own: Record<string, JsonSchema> = { ...generic, ...paths }
  const operations = Object.values(own).flatMap((path) => Object.values(path))
  const operationIds = new Set(operations.map((item) => String(Object(item).operationId)))
  const names = apiTags(catalog, [CALLS, ...Object.keys(tagDescriptions)])
  const calls = endpointPaths(catalog, named, { tags: names, operationIds })
  const all = { ...calls, ...own }
  const answers = {
    ...responses,
    ...refusedResponses(named),
    CallFailure: failureResponse(named),
    ...callErrorComponents(named),
  }
  const apis = new Map([...catalog.values()].map(({ slug, upstream }) => [names.get(slug) ?? '', upstream.description]))
  const listed = tags(all, apis)
  return {
    openapi: '3.1.0',
    info: info(baseUrl),
    servers: [{ url: baseUrl, description: 'This gateway' }],
    tags: listed,
    'x-tagGroups': tagGroups(listed, apis),
    paths: all,
    components: {
      securitySchemes,
      parameters,
      headers,
      responses: answers,
      examples: errorExamples([all, answers], baseUrl),
      schemas: Object.fromEntries([...named].sort(([a], [b]) => a.localeCompare(b))),
    },
  }
}

/** Tag of the generic route and of asynchronous calls. */
const CALLS = 'Calls'

/** Turns `/v1/keys/:id` into `/v1/keys/{id}`. */
function templated(url: string): string {
  return url.replace(/:(\w+)/g, '{$1}')
}

/** What the functions below need to write the document. */
interface DocumentParts {
  catalog: Catalog
  named: NamedSchemas
  examples: DocumentExamples
}

function operation(route: DocumentedRoute, path: string, parts: DocumentParts): JsonSchema {
  const { named, examples } = parts
  const { body } = route
  const id = route.operationId ?? operationId(route.method, path)
  return {
    operationId: id,
    tags: route.tags,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: route.guard === 'session' ? [{ bearer: [] }] : route.guard === 'call' ? CALL_SECURITY : [],
    parameters: [
      ...pathParameters(route, path, parts),
      ...parametersFrom(route.querystring, 'query', named),
      ...parametersFrom(route.headers, 'header', named),
    ],
    ...(body === undefined ? {} : { requestBody: requestBody(body, examples.requests[id], named) }),
    responses: responsesOf(route, id, parts),
  }
}

function responsesOf(
  route: DocumentedRoute,
  id: string,
  { named, examples }: DocumentParts,
): Record<string, JsonSchema> {
  const refusals = errorResponses(codesOf(route), false, named)
  const declared = Object.fromEntries(
    Object.entries(route.responses).map(([status, schema]) => {
      const given = examples.answers[`${id} ${status}`] ?? (status.startsWith('2') ? examples.answers[id] : undefined)
      return [status, response(status, schema, { named, given })]
    }),
  )
  const own = { ...refusals, ...declared }
  for (const [status, refusal] of Object.entries(refusals)) {
    if (declared[status]) own[status] = eitherOf(refusal, declared[status])
  }
  const responses = route.outcome === 'call' ? withCallOutcome(own, named, examples.call) : own
  return route.guard === undefined ? responses : withLimitHeaders(responses)
}

/** Adds the headers with the account's remaining allowance to every answer to a known caller. */
function withLimitHeaders(responses: Record<string, JsonSchema>): Record<string, JsonSchema> {
  const documented = Object.entries(responses).map(([status, response]) => {
    const isOfKnownCaller = status !== '401' && response.$ref === undefined
    const headers = { ...Object(response.headers), ...limitHeaders() }
    return [status, isOfKnownCaller ? { ...response, headers } : response]
  })
  return Object.fromEntries(documented)
}

/** An answer that is either our error or the answer that the route declares for the same status. */
function eitherOf(refusal: JsonSchema, declared: JsonSchema): JsonSchema {
  const json = (response: JsonSchema) => Object(Object(response.content)['application/json'])
  const schema = { anyOf: [json(refusal).schema, json(declared).schema].filter(Boolean) }
  return {
    ...refusal,
    description: `${refusal.description}, or: ${declared.description}`,
    content: { ...Object(refusal.content), 'application/json': { ...json(refusal), schema } },
  }
}

function requestBody(body: unknown, given: unknown, named: NamedSchemas): JsonSchema {
  const schema = toDocumentSchema(body, named)
  const inner = typeof schema.$ref === 'string' ? named.get(schema.$ref.slice('#/components/schemas/'.length)) : schema
  const example = given ?? sampleOf(schema, named, { isRequest: true })
  return {
    required: Array.isArray(inner?.required) && inner.required.length > 0,
    content: { 'application/json': { schema, example } },
  }
}

/** The answer that the route declares for a status. Error answers follow from the error codes. */
function response(
  status: string,
  declared: unknown,
  { named, given }: { named: NamedSchemas; given: MediaExamples | undefined },
): JsonSchema {
  const { content, description, ...schema } = declared as JsonSchema
  const words = typeof description === 'string' ? description : (STATUS_CODES[status] ?? 'Answer')
  const requestId = { 'X-Request-Id': headerReference('RequestId') }
  if (content !== undefined) {
    const types = Object.entries(content as Record<string, JsonSchema>)
    const written = types.map(([type, media]) => {
      const example = given?.[type]
      const schema = toDocumentSchema(media.schema, named)
      return [type, { ...media, schema, ...(example === undefined ? {} : { example }) }]
    })
    return { description: words, headers: requestId, content: Object.fromEntries(written) }
  }
  if (schema.type === 'null') return { description: words, headers: requestId }
  const written = toDocumentSchema(declared, named)
  return {
    description: words,
    headers: requestId,
    content: {
      'application/json': { schema: written, example: given?.['application/json'] ?? sampleOf(written, named) },
    },
  }
}

interface ObjectSchema {
  properties?: Record<string, JsonSchema>
  required?: string[]
}

/** The members of a query or header schema, as parameters. */
function parametersFrom(schema: unknown, place: 'query' | 'header', named: NamedSchemas): JsonSchema[] {
  const { properties = {}, required = [] } = (schema ?? {}) as ObjectSchema
  return Object.entries(properties).map(([name, inner]) => {
    const { description, ...rest } = toDocumentSchema(inner, named)
    return {
      name,
      in: place,
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    }
  })
}

/** The parameters of a path, with the route's own descriptions. */
function pathParameters(route: DocumentedRoute, path: string, { catalog, named }: DocumentParts): JsonSchema[] {
  const { properties = {} } = (route.params ?? {}) as ObjectSchema
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const { description = pathWords(name, path), ...schema } = toDocumentSchema(properties[name] ?? {}, named)
    const isDescribed = Object.keys(schema).some((keyword) => keyword !== 'type')
    return {
      name,
      in: 'path',
      required: true,
      description,
      schema: isDescribed ? schema : pathSchema(name, path, catalog),
    }
  })
}

function pathWords(name: string, path: string): string {
  if (name === 'slug' || name === 'apiSlug') return 'An api_name of the catalog'
  if (name === 'memberId') return 'Id of the membership, from the answer of GET /v1/teams/{id}'
  const [, thing] = path.match(/\/(\w+)s\/\{\w+\}/) ?? []
  return thing === undefined ? `The ${name}` : `${name === 'id' ? 'Id' : 'Name'} of the ${thing}`
}

function pathSchema(name: string, path: string, catalog: Catalog): JsonSchema {
  if (name === 'slug' || name === 'apiSlug') return { type: 'string', enum: [...catalog.keys()] }
  if (path.startsWith('/v1/calls/')) return { type: 'string', pattern: '^call_[0-9a-f]{32}$' }
  return /^id$|Id$/.test(name) ? { type: 'string', format: 'uuid' } : { type: 'string' }
}

/**
 * Tags: the generic call, then the APIs, then the service's own tags in the order of their
 * descriptions.
 *
 * @param apis the descriptions of the APIs by tag
 */
function tags(paths: Record<string, JsonSchema>, apis: ReadonlyMap<string, string>): OpenApiDocument['tags'] {
  const used = new Set(
    Object.values(paths).flatMap((path) =>
      Object.values(path).flatMap((item) => (item as { tags?: string[] }).tags ?? []),
    ),
  )
  const order = Object.keys(tagDescriptions)
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length)
  const own = [...used].filter((name) => !apis.has(name) && name !== CALLS).sort((a, b) => place(a) - place(b))
  return [CALLS, ...apis.keys(), ...own].map((name) => {
    const description = apis.get(name) ?? tagDescriptions[name]
    return description === undefined ? { name } : { name, description }
  })
}

function tagGroups(tags: OpenApiDocument['tags'], apis: ReadonlyMap<string, string>): OpenApiDocument['x-tagGroups'] {
  const names = tags.map(({ name }) => name)
  return [
    { name: 'APIs', tags: names.filter((name) => apis.has(name)) },
    { name: 'Calls', tags: [CALLS] },
    { name: 'Account and service', tags: names.filter((name) => !apis.has(name) && name !== CALLS) },
  ]
}
