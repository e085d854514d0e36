import { isObject } from '../json.ts'
import type { Located, OpenApiDocument } from './references.ts'
import type { Schema } from './schema-keywords.ts'

/** The example of a media type or a parameter, or else of its schema. */
export function statedExample(document: OpenApiDocument, holder: Located): { value: unknown } | undefined {
  const { example } = Object(holder.value)
  if (example !== undefined) return { value: example }
  for (const [, { value }] of document.members(document.member(holder, 'examples'))) {
    if (isObject(value) && value.value !== undefined) return { value: value.value }
  }
  const schema = document.member(holder, 'schema')
  const { example: ofSchema, examples } = Object(schema.value)
  if (ofSchema !== undefined) return { value: ofSchema }
  return Array.isArray(examples) && examples.length > 0 ? { value: examples[0] } : undefined
}

/**
 * Converts an example to the type of its schema, because documents often write examples as texts.
 */
export function inTypeOf({ type, items }: Schema, example: unknown): unknown {
  if (example === undefined) return undefined
  if (type === 'array') return [example].flat().map((item) => inTypeOf((items ?? {}) as Schema, item))
  if (type === 'string' && typeof example !== 'object') return String(example)
  if ((type === 'number' || type === 'integer') && typeof example === 'string') return Number(example)
  if (type === 'boolean' && typeof example === 'string') return example === 'true'
  return example
}
