/** A schema, with or without a reference. */
export type Schema = Record<string, unknown>

/** An operation of the OpenAPI document, in the form that the reference needs. */
export interface Operation {
  id: string
  method: string
  path: string
  tag: string
  summary: string
  description: string
  /** The credential that it needs, in words. */
  credential: string
  parameters: {
    name: string
    place: string
    required: boolean
    schema: Schema
    description: string
    /** Undefined if there is no example. */
    example: unknown
  }[]
  /** Undefined if there is no body. */
  body: { schema: Schema; example: unknown; required: boolean } | undefined
  responses: { status: string; description: string; media: Media[] }[]
}

/** A media type of a response. */
export interface Media {
  type: string
  schema: Schema
  /** Undefined if there is no example; a text if the media type is not JSON. */
  example: unknown
}

export interface OpenApi {
  tags: { name: string; description?: string }[]
  paths: Record<string, Schema>
  components: Schema
}

/** The operations that are not endpoints of APIs, because endpoints have pages of their own. */
export function accountOperations(document: OpenApi): Operation[] {
  return Object.entries(document.paths)
    .filter(([path]) => !path.startsWith('/v1/call/') || path.includes('{'))
    .flatMap(([path, item]) =>
      METHODS.filter((method) => item[method] !== undefined).map((method) => {
        const operation = object(item[method])
        const parameters = [...list(item.parameters), ...list(operation.parameters)]
        return readOperation(document, { path, method }, { ...operation, parameters })
      }),
    )
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

function readOperation(
  document: OpenApi,
  { path, method }: { path: string; method: string },
  operation: Schema,
): Operation {
  const resolve = resolver(document)
  const parameters = list(operation.parameters).map((parameter) => {
    const { name, in: place, required, schema, description, example } = resolve(parameter)
    const read = resolve(schema)
    return {
      name: String(name),
      place: String(place),
      required: required === true,
      schema: read,
      description: text(description) || text(read.description),
      example,
    }
  })
  const body = jsonOf(resolve(operation.requestBody))
  return {
    id: text(operation.operationId),
    method: method.toUpperCase(),
    path,
    tag: text(list(operation.tags)[0]),
    summary: text(operation.summary),
    description: text(operation.description),
    credential: credentialWords(list(operation.security)),
    parameters,
    body: body && {
      schema: resolve(body.schema),
      example: exampleOf(body),
      required: resolve(operation.requestBody).required === true,
    },
    responses: Object.entries(object(operation.responses)).map(([status, response]) => {
      const { description, content } = resolve(response)
      const media = Object.entries(object(content)).map(([type, form]) => ({
        type,
        schema: resolve(object(form).schema),
        example: exampleOf(object(form)),
      }))
      return { status, description: text(description), media }
    }),
  }
}

/**
 * Replaces references by their targets, at any depth. In a recursive schema, the inner reference
 * stays.
 */
function resolver(document: OpenApi): (value: unknown) => Schema {
  const inner = (value: unknown, seen: string[]): unknown => {
    if (Array.isArray(value)) return value.map((item) => inner(item, seen))
    if (typeof value !== 'object' || value === null) return value
    const { $ref } = value as { $ref?: unknown }
    if (typeof $ref === 'string') {
      return seen.includes($ref) ? {} : inner(lookUp(document, $ref), [...seen, $ref])
    }
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, inner(member, seen)]))
  }
  return (value) => object(inner(value, []))
}

function lookUp(document: OpenApi, reference: string): unknown {
  return reference
    .slice('#/'.length)
    .split('/')
    .reduce<unknown>((place, name) => object(place)[name.replaceAll('~1', '/').replaceAll('~0', '~')], document)
}

function jsonOf(holder: Schema): Schema | undefined {
  const json = object(holder.content)['application/json']
  return json === undefined ? undefined : object(json)
}

function exampleOf({ example, examples }: Schema): unknown {
  return example ?? object(Object.values(object(examples))[0]).value
}

function credentialWords(security: unknown[]): string {
  const names = security.flatMap((scheme) => Object.keys(object(scheme)))
  if (names.length === 0) return 'No credential'
  return names.includes('apiKey') ? 'API key or session token' : 'Session token'
}

const object = (value: unknown): Schema => (typeof value === 'object' && value !== null ? (value as Schema) : {})
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
