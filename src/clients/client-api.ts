import type { ParameterSchema } from '../catalog/api-endpoint.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { endpointWords, pascal } from '../catalog/type-name.ts'
import { type JsonSchema, toDocumentSchema } from '../openapi/schemas.ts'

/** An API as a client has it. */
export interface ClientApi {
  slug: string
  displayName: string
  description: string
  endpoints: ClientEndpoint[]
}

/** An endpoint as a client has it. */
export interface ClientEndpoint {
  /** Without the slash: `by-ingredient`. */
  path: string
  /** Name of its types, as in the OpenAPI document: `WeatherCurrent`. */
  typeName: string
  description: string
  method: 'GET' | 'POST'
  /** A call of it is never made a second time when it is not known what came of the first. */
  mustNotRepeat: boolean
  parameters: ClientParameter[]
  /** Parameters of the recorded call. */
  example: Record<string, unknown>
  data: JsonSchema
}

export interface ClientParameter {
  name: string
  required: boolean
  schema: ParameterSchema
}

/** What the generated clients are made from: every API that is offered, in the catalog's order. */
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

/** The kinds that a schema allows, of which a client's type is the union: `['string', 'null']`. */
export function kindsOf({ type }: JsonSchema): string[] {
  return [type ?? []].flat() as string[]
}

/** The gateway that a client is made for. */
export interface ClientGateway {
  baseUrl: string
  /** Longest that a call may take there. */
  callTimeoutMs: number
}

/** By how much a client waits longer than a call may take, milliseconds. */
export const TIMEOUT_SPARE_MS = 10_000
