import { TEXT_LENGTH_MAX } from '../parameters.ts'
import type { Schema } from './schema-keywords.ts'

/** Most items of a list in a call. */
const ITEMS_MAX = 50

/** The keywords of a plain value that its schema keeps. */
const KEPT = [
  ...['description', 'default', 'enum', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength'],
]

/** The schema of a plain value, or of a list of plain values; undefined for anything else. */
export function parameterSchema(schema: Schema): Schema | undefined {
  const { anyOf, ...beside } = schema
  const [only, ...others] = ((anyOf ?? []) as Schema[]).filter(({ type }) => type !== 'null')
  if (only && others.length === 0) return parameterSchema({ ...only, ...beside })
  const [kind] = [schema.type].flat().filter((type) => type !== 'null')
  if (kind !== 'array') return scalar(schema)
  const items = scalar((schema.items ?? {}) as Schema)
  if (!items) return undefined
  const { description, minItems, maxItems } = schema
  return {
    type: 'array',
    items,
    ...(description === undefined ? {} : { description }),
    ...(typeof minItems === 'number' ? { minItems } : {}),
    maxItems: Math.min(ITEMS_MAX, Number(maxItems ?? ITEMS_MAX)),
  }
}

function scalar(schema: Schema): Schema | undefined {
  const { anyOf, const: constant } = schema
  // A default of null means that there is no default.
  const stated = KEPT.filter((name) => (schema[name] ?? null) !== null)
  const kept = Object.fromEntries(stated.map((name) => [name, schema[name]]))
  if (Array.isArray(anyOf)) {
    const options = (anyOf as Schema[]).filter(({ type }) => type !== 'null').map(scalar)
    const [only] = options
    if (options.some((option) => !option)) return undefined
    const type = options.every((option) => option?.type === only?.type) ? only?.type : 'string'
    return { type, ...kept }
  }
  const [type = typeof (Array.isArray(schema.enum) ? schema.enum[0] : 'text'), ...others] = [schema.type]
    .flat()
    .filter((name) => name !== 'null' && name !== undefined)
  if (others.length > 0) return { type: 'string', maxLength: TEXT_LENGTH_MAX, ...kept }
  if (type !== 'string' && type !== 'number' && type !== 'integer' && type !== 'boolean') return undefined
  const values = constant === undefined ? kept.enum : [constant]
  // In YAML, people forget the quotes around a text that looks like a number. A query has no quotes
  // either.
  const inType = (value: unknown) => (type === 'string' && typeof value !== 'object' ? String(value) : value)
  const enumeration = Array.isArray(values) ? { enum: values.filter((value) => value !== null).map(inType) } : {}
  const bound = type === 'string' && !Array.isArray(values) ? { maxLength: TEXT_LENGTH_MAX } : {}
  const fallback = kept.default === undefined ? {} : { default: inType(kept.default) }
  return { type, ...bound, ...longNumber(type, kept), ...kept, ...enumeration, ...fallback }
}

/** The format of a whole number that a call may give with more digits than a double can hold. */
function longNumber(type: string, kept: Schema): Schema {
  const isBounded = ['enum', 'maximum', 'exclusiveMaximum', 'multipleOf'].some((name) => name in kept)
  const isLong = type === 'integer' && !isBounded && /Format: u?int64\./.test(String(kept.description))
  return isLong ? { format: 'int64' } : {}
}
