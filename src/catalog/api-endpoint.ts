import { Compile, type Validator } from 'typebox/schema'
import type { Endpoint } from './endpoint.ts'

/** An endpoint of an upstream, prepared for calls. */
export interface ApiEndpoint {
  path: string
  /** The declaration in the upstream's file. */
  declaration: Endpoint
  /** The method with which callers call it. */
  method: 'GET' | 'POST'
  /**
   * Declared parameters, each with its compiled check: required parameters first, and otherwise in
   * the order of the schema.
   */
  parameters: ApiParameter[]
  /** The declared parameter for each name that a call may use: its own name and its aliases. */
  byName: ReadonlyMap<string, ApiParameter>
}

export interface ApiParameter {
  name: string
  /** Other names for the parameter that a call may use. */
  aliases: readonly string[]
  schema: ParameterSchema
  required: boolean
  /** Whether the parameter holds the JSON body of the upstream's request. */
  isBody: boolean
  validator: Validator
}

/**
 * The name of the parameter that holds the JSON body of the upstream's request, if the endpoint
 * takes a body.
 */
const BODY = 'body'

/** The keywords of a parameter's JSON Schema that descriptions and conversions read. */
export interface ParameterSchema {
  type?: 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object'
  /** For a list of plain values. */
  items?: ParameterSchema
  /** For a JSON object. */
  properties?: Record<string, unknown>
  description?: string
  default?: unknown
  enum?: unknown[]
  anyOf?: { const?: unknown }[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  multipleOf?: number
  minItems?: number
  maxItems?: number
  minProperties?: number
}

/** An endpoint with the checks of its parameters compiled. */
export function createEndpoint(path: string, endpoint: Endpoint): ApiEndpoint {
  const required = new Set(endpoint.parameters.required ?? [])
  const aliases: Record<string, readonly string[] | undefined> = endpoint.aliases ?? {}
  const parameters = Object.entries(endpoint.parameters.properties).map(([name, schema]) => ({
    name,
    aliases: aliases[name] ?? [],
    schema: schema as ParameterSchema,
    required: required.has(name),
    isBody: name === BODY && endpoint.bodyBytesMax !== undefined,
    validator: Compile(schema),
  }))
  const names = parameters.flatMap((parameter) =>
    [parameter.name, ...parameter.aliases].map((name): [string, ApiParameter] => [name, parameter]),
  )
  const ordered = parameters.toSorted((a, b) => Number(b.required) - Number(a.required))
  return { path, declaration: endpoint, method: callMethod(endpoint), parameters: ordered, byName: new Map(names) }
}

/**
 * A GET takes its parameters from the query, which cannot hold a body, and it must change nothing.
 * Everything else is a POST.
 */
function callMethod({ effect = 'read', bodyBytesMax }: Endpoint): 'GET' | 'POST' {
  return effect === 'read' && bodyBytesMax === undefined ? 'GET' : 'POST'
}
