/** A schema of the document: JSON Schema 2020-12. */
export type JsonSchema = Record<string, unknown>

/** The document's `components.schemas`. It is filled while schemas are written. */
export type NamedSchemas = Map<string, JsonSchema>

/**
 * Turns a schema that validates into a schema for the document. If it has an `$id`, or a `title` in
 * PascalCase, it becomes a component and the result is a reference. Records are written with
 * `additionalProperties`, which client generators understand.
 */
export function toDocumentSchema(schema: unknown, named: NamedSchemas): JsonSchema {
  // The conversion to JSON removes what the schema library attaches to a schema.
  return rewrite(JSON.parse(JSON.stringify(schema)), named) as JsonSchema
}

/** Stores a schema under a name and returns a reference to it. */
export function nameSchema(name: string, schema: JsonSchema, named: NamedSchemas): JsonSchema {
  const known = named.get(name)
  if (known && JSON.stringify(known) !== JSON.stringify(schema)) throw new Error(`two schemas are called ${name}`)
  named.set(name, schema)
  return { $ref: `#/components/schemas/${name}` }
}

/** Keywords whose value maps names to schemas. The names are not keywords. */
const MAPS = new Set(['properties', '$defs', 'dependentSchemas'])
/** Keywords whose value is data, not a schema. */
const DATA = new Set(['default', 'const', 'enum', 'example', 'examples', 'required'])

function rewrite(value: unknown, named: NamedSchemas): unknown {
  if (Array.isArray(value)) return value.map((item) => rewrite(item, named))
  if (typeof value !== 'object' || value === null) return value
  const { $id, ...schema } = value as JsonSchema
  const written: JsonSchema = {}
  for (const [keyword, content] of Object.entries(schema)) {
    if (DATA.has(keyword)) written[keyword] = content
    else if (MAPS.has(keyword)) {
      const entries = Object.entries(content as JsonSchema).map(([name, inner]) => [name, rewrite(inner, named)])
      written[keyword] = Object.fromEntries(entries)
    } else if (keyword === 'patternProperties') Object.assign(written, recordOf(content as JsonSchema, named))
    else written[keyword] = rewrite(content, named)
  }
  if (
    Array.isArray(written.enum) &&
    written.type === undefined &&
    written.enum.every((item) => typeof item === 'string')
  )
    written.type = 'string'
  const flat = withNull(written)
  const name = $id ?? (/^[A-Z][A-Za-z0-9]*$/.test(String(schema.title ?? '')) ? schema.title : undefined)
  return typeof name === 'string' ? nameSchema(name, flat, named) : flat
}

/**
 * Turns `anyOf: [{ type: 'string', description }, { type: 'null' }]` into
 * `{ type: ['string', 'null'], description }`, because client generators and references do not show
 * descriptions inside a union.
 */
function withNull(schema: JsonSchema): JsonSchema {
  const { anyOf, ...outer } = schema
  if (!Array.isArray(anyOf)) return schema
  const others: JsonSchema[] = anyOf.filter(({ type }: JsonSchema) => type !== 'null')
  const [only] = others
  if (others.length !== 1 || anyOf.length !== 2 || typeof only?.type !== 'string') return schema
  const { const: constant, ...rest } = only
  const values = constant === undefined ? only.enum : [constant]
  return {
    ...rest,
    type: [only.type, 'null'],
    ...(Array.isArray(values) ? { enum: [...values, null] } : {}),
    ...outer,
  }
}

/** TypeBox writes a record with any names as a pattern that matches every name. */
function recordOf(patterns: JsonSchema, named: NamedSchemas): JsonSchema {
  const [only, ...others] = Object.entries(patterns)
  if (only && others.length === 0 && /^\^\.\*\$$|^\^\(\.\*\)\$$/.test(only[0])) {
    return { additionalProperties: rewrite(only[1], named) }
  }
  return {
    patternProperties: Object.fromEntries(Object.entries(patterns).map(([key, inner]) => [key, rewrite(inner, named)])),
  }
}
