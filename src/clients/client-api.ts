import type { ParameterSchema } from '../catalog/api-endpoint.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { endpointWords, pascal } from '../catalog/type-name.ts'
import { ERRORS } from '../errors.ts'
import { type JsonSchema, toDocumentSchema } from '../openapi/schemas.ts'

/** An API as the generators of clients need it. */
export interface ClientApi {
  slug: string
  displayName: string
  description: string
  endpoints: ClientEndpoint[]
}

/** An endpoint as the generators of clients need it. */
export interface ClientEndpoint {
  /** The path without its slash: `by-ingredient`. */
  path: string
  /** The name of its types, usually the name in the OpenAPI document: `WeatherCurrent`. */
  typeName: string
  description: string
  method: 'GET' | 'POST'
  /**
   * Whether clients must not repeat a call if they do not know whether the first was carried out.
   */
  mustNotRepeat: boolean
  parameters: ClientParameter[]
  /** The parameters of the recorded call. */
  example: Record<string, unknown>
  data: JsonSchema
}

export interface ClientParameter {
  name: string
  required: boolean
  schema: ParameterSchema
}

/**
 * What a call may give as a parameter: a long whole number also as a string, to keep its digits.
 */
export function givenSchema({ schema }: ClientParameter): JsonSchema {
  return schema.format === 'int64' ? { ...schema, type: ['integer', 'string'] } : { ...schema }
}

/** The input of all client generators: every API that is offered, in the order of the catalog. */
export function clientApis(catalog: Catalog): ClientApi[] {
  return offeredApis(catalog).map(({ slug, upstream, endpoints }) => ({
    slug,
    displayName: upstream.displayName,
    description: upstream.description,
    endpoints: [...endpoints.values()].map(({ path, method, declaration: endpoint, parameters }) => ({
      path: path.slice(1),
      typeName: pascal(endpointWords(slug, path)),
      description: endpoint.description,
      method,
      mustNotRepeat: endpoint.effect === 'once',
      parameters: parameters.map(({ name, schema, required }) => ({ name, schema, required })),
      example: endpoint.example.parameters as Record<string, unknown>,
      data: toDocumentSchema(endpoint.data, new Map()),
    })),
  }))
}

/**
 * The endpoints that accept only POST, by API and path, each with whether clients must not repeat
 * a call.
 */
export function postedEndpoints(apis: ClientApi[]): [name: string, mustNotRepeat: boolean][] {
  return apis.flatMap(({ slug, endpoints }) =>
    endpoints
      .filter(({ method }) => method === 'POST')
      .map(({ path, mustNotRepeat }): [string, boolean] => [`${slug}/${path}`, mustNotRepeat]),
  )
}

/** Gives each type of a client a name that nothing else in the client has. */
export class TypeNames {
  readonly #taken: Set<string>

  /** @param code the parts of the client that do not depend on the catalog */
  constructor(code: string) {
    this.#taken = new Set(code.match(/[A-Za-z]\w*/g))
  }

  /** The wanted name, or the wanted name with a number: `Answer_2`. */
  take(wanted: string): string {
    let name = wanted
    for (let count = 2; this.#taken.has(name); count += 1) name = `${wanted}_${count}`
    this.#taken.add(name)
    return name
  }

  /** APIs whose endpoints have type names that are free in this client. */
  ofEndpoints(apis: ClientApi[]): ClientApi[] {
    const named = (endpoint: ClientEndpoint) => ({ ...endpoint, typeName: this.take(endpoint.typeName) })
    return apis.map((api) => ({ ...api, endpoints: api.endpoints.map(named) }))
  }
}

/** The types that a schema allows; a client's type is their union: `['string', 'null']`. */
export function kindsOf({ type }: JsonSchema): string[] {
  return [type ?? []].flat() as string[]
}

/** The gateway for which a client is generated. */
export interface ClientGateway {
  baseUrl: string
  /** The longest time of a call at the gateway, milliseconds. */
  callTimeoutMs: number
}

/** Codes of failures after which the same call may succeed. */
export const RETRYABLE_CODES = Object.entries(ERRORS).flatMap(([code, { retryable }]) => (retryable ? [code] : []))

/** How much longer than the longest call a client waits, milliseconds. */
export const TIMEOUT_SPARE_MS = 10_000
