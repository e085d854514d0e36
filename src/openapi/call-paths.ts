import { memoize } from '../async/memoize.ts'
import type { ApiEndpoint, ApiParameter } from '../catalog/api-endpoint.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { effectWords } from '../catalog/limit-words.ts'
import { aliasWords } from '../catalog/parameter-words.ts'
import { camel, endpointWords, pascal } from '../catalog/type-name.ts'
import { CALL_CODES, errorResponses, headerReference, limitHeaders } from './error-responses.ts'
import { type JsonSchema, type NamedSchemas, nameSchema, toDocumentSchema } from './schemas.ts'

/** The path of the proxy route. The document lists a path for each endpoint instead. */
export const CALL_ROUTE = '/v1/call/*'

/** A call accepts either credential. */
export const CALL_SECURITY = [{ apiKey: [] }, { bearer: [] }]

/**
 * The tag of each API's operations by slug: its name, and its slug if another API or a part of the
 * service has the name. Generators make a class of each tag, whatever its letter case.
 *
 * @param own the tags of the service
 */
export function apiTags(catalog: Catalog, own: string[]): Map<string, string> {
  const keyOf = (tag: string): string => tag.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
  const taken = new Set(own.map(keyOf))
  const tags = new Map<string, string>()
  for (const { slug, upstream } of catalog.values()) {
    const { displayName } = upstream
    tags.set(slug, taken.has(keyOf(displayName)) ? `${displayName} (${slug})` : displayName)
    taken.add(keyOf(displayName))
  }
  return tags
}

/**
 * Every endpoint of every API, as a path of its own. Headers that change the form of the answer
 * (`Prefer`, raw, scenario) are described only for the generic route, because tools that fill in
 * optional headers would send them with every call.
 *
 * @param taken the tags of the APIs, and the ids that other operations have
 */
export function endpointPaths(
  catalog: Catalog,
  named: NamedSchemas,
  { tags, operationIds }: { tags: ReadonlyMap<string, string>; operationIds: ReadonlySet<string> },
): Record<string, JsonSchema> {
  const paths: Record<string, JsonSchema> = {}
  for (const api of catalog.values()) {
    for (const endpoint of api.endpoints.values()) {
      const method = endpoint.method.toLowerCase()
      const operationId = freeName(camel(endpointWords(api.slug, endpoint.path)), operationIds)
      const operation = endpointOperation(api, endpoint, named)
      paths[`/v1/call/${api.slug}${endpoint.path}`] = {
        [method]: { operationId, tags: [tags.get(api.slug)], ...operation },
      }
    }
  }
  return paths
}

/**
 * A free name for the schema or the operation of an endpoint, because an own API may have the name
 * of a part of the service.
 */
function freeName(name: string, taken: { has: (name: string) => boolean }): string {
  return taken.has(name) ? freeName(`${name}Data`, taken) : name
}

/** The error answers of all calls, for `components.responses`. */
export function callErrorComponents(named: NamedSchemas): Record<string, JsonSchema> {
  const { default: _, ...responses } = errorResponses(CALL_CODES, true, named)
  return Object.fromEntries(Object.entries(responses).map(([status, response]) => [`CallError${status}`, response]))
}

/** References to these answers, for the operations of all calls. */
export const errorReferences = memoize(() => '', listErrorReferences)

function listErrorReferences(): Record<string, JsonSchema> {
  const { default: refused = {}, ...responses } = errorResponses(CALL_CODES, true, new Map())
  const references = Object.keys(responses).map((status): [string, JsonSchema] => [
    status,
    { $ref: `#/components/responses/CallError${status}` },
  ])
  return { ...Object.fromEntries(references), default: refused }
}

function endpointOperation(api: Api, apiEndpoint: ApiEndpoint, named: NamedSchemas): JsonSchema {
  const { path, declaration: endpoint, parameters } = apiEndpoint
  const { terms } = api.upstream
  const words = endpointWords(api.slug, path)
  const data = nameSchema(freeName(pascal(words), named), toDocumentSchema(endpoint.data, named), named)
  const given = endpoint.example.parameters as Record<string, unknown>
  const conditions = [
    effectWords(apiEndpoint),
    `Tier: ${api.tierRequired}.`,
    terms.attribution && `${terms.attribution}.`,
    terms.summary,
  ]
  const address = terms.url === undefined ? '' : ` [Terms](${terms.url})`
  return {
    summary: endpoint.description.replace(/\.$/, ''),
    description: `${endpoint.description}\n\n${conditions.filter(Boolean).join(' ')}${address}`,
    security: CALL_SECURITY,
    ...(apiEndpoint.method === 'POST'
      ? { requestBody: callBody(apiEndpoint, named) }
      : {
          parameters: parameters.map((parameter) => queryParameter(parameter, given[parameter.name], named)),
        }),
    responses: {
      200: success({ 'application/json': envelope(data, { status: 'success', data: endpoint.example.data }) }),
      ...errorReferences(),
    },
  }
}

/** The parameters of a POST are the members of its body. */
function callBody({ declaration: endpoint }: ApiEndpoint, named: NamedSchemas): JsonSchema {
  const schema = toDocumentSchema(endpoint.parameters, named)
  const required = Array.isArray(schema.required) && schema.required.length > 0
  return { required, content: { 'application/json': { schema, example: endpoint.example.parameters } } }
}

/**
 * One parameter, by its declared name only. If each alias were a parameter, none could be required,
 * and tools would offer them as different parameters.
 */
function queryParameter(
  { name, aliases, schema, required }: ApiParameter,
  example: unknown,
  named: NamedSchemas,
): JsonSchema {
  const { description, ...rest } = toDocumentSchema(schema, named)
  const words = [description, aliasWords(aliases)].filter(Boolean).join('. ')
  return {
    name,
    in: 'query',
    required,
    ...(words === '' ? {} : { description: words }),
    ...(aliases.length === 0 ? {} : { 'x-aliases': [...aliases] }),
    schema: rest,
    // Optional parameters get no example, so that tools do not fill them in. Their default is
    // better for a first call.
    ...(example === undefined || !required ? {} : { example }),
  }
}

/** The envelope of the specification around the data of an endpoint. */
export function envelope(data: JsonSchema, example?: unknown): JsonSchema {
  return {
    schema: {
      type: 'object',
      required: ['status', 'data'],
      properties: { status: { type: 'string', const: 'success', description: 'Always success' }, data },
    },
    ...(example === undefined ? {} : { examples: { recorded: { summary: 'A recorded answer', value: example } } }),
  }
}

/** The 200 answer of a call with these media types. */
export function success(content: JsonSchema): JsonSchema {
  return {
    description: 'The mapped answer of the upstream API',
    headers: {
      'X-Request-Id': headerReference('RequestId'),
      'X-Call-Id': headerReference('CallId'),
      ...limitHeaders(),
      'Server-Timing': headerReference('ServerTiming'),
      'Cache-Status': headerReference('CacheStatus'),
      Age: headerReference('Age'),
      'Preference-Applied': headerReference('PreferenceApplied'),
      'X-Gateway-Mode': headerReference('GatewayMode'),
      'X-Gateway-Recorded-For': headerReference('GatewayRecordedFor'),
      'X-Gateway-Example': headerReference('GatewayExample'),
      Link: headerReference('TermsLink'),
    },
    content,
  }
}
