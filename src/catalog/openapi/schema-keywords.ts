import type { Path } from './places.ts'
import type { Findings } from './report.ts'
import { shortened } from './words.ts'

/**
 * A schema as the gateway validates and shows it: JSON Schema without references, patterns, titles
 * and ids.
 */
export type Schema = Record<string, unknown>

/**
 * Longest description of a member, characters. Models read descriptions, so they are kept short.
 */
export const DESCRIPTION_MAX = 300

/** Longest pattern that a description quotes, characters. */
const PATTERN_MAX = 80

const ENUM_MAX = 1_000

/** Longest enumeration, and longest default or constant, as JSON, characters. */
const ENUM_LENGTH_MAX = 20_000
const VALUE_LENGTH_MAX = 2_000

const NUMBERS = ['minimum', 'maximum', 'multipleOf'] as const
const LENGTHS = ['minLength', 'maxLength', 'minItems', 'maxItems'] as const
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/**
 * A schema has the example of its document under this symbol, and not under a keyword, so that no
 * tool or page grows by it.
 */
export const EXAMPLE = Symbol('example')

/** The keywords of a schema besides nested schemas: type, values, description and bounds. */
export function statedKeywords(value: Record<string, unknown>, path: Path, findings: Findings): Schema {
  const schema: Schema = { ...typeOf(value, path, findings), ...statedValues(value, path, findings) }
  const description = descriptionOf(value)
  if (description !== '') schema.description = description
  const [example = value.example] = Array.isArray(value.examples) ? value.examples : []
  if (example !== undefined && JSON.stringify(example).length <= VALUE_LENGTH_MAX) Reflect.set(schema, EXAMPLE, example)
  for (const name of LENGTHS)
    if (Number.isSafeInteger(value[name]) && Number(value[name]) >= 0) schema[name] = value[name]
  return Object.assign(schema, numberBounds(value))
}

/** The type of a schema. `nullable` of OpenAPI 3.0 becomes the type null of JSON Schema. */
function typeOf({ type, nullable, enum: values }: Record<string, unknown>, path: Path, findings: Findings): Schema {
  const written = [type].flat().filter((name) => name !== undefined)
  const named = written.filter((name): name is string => typeof name === 'string' && TYPES.has(name))
  const unknown = written.find((name) => !named.some((known) => known === name))
  if (unknown !== undefined) {
    const shown = shortened(String(unknown), 40)
    findings.leaveOut([...path, 'type'], `The type ${shown} is not a type of JSON Schema, and is left out.`)
  }
  if (named.length === 0) return {}
  const isNullable = nullable === true || (Array.isArray(values) && values.includes(null))
  const types = isNullable && !named.includes('null') ? [...named, 'null'] : named
  return { type: types.length === 1 ? types[0] : types }
}

/** The values of enum, const and default, unless they are too long for a catalog. */
function statedValues(value: Record<string, unknown>, path: Path, findings: Findings): Schema {
  const schema: Schema = {}
  const bounds = { enum: ENUM_LENGTH_MAX, const: VALUE_LENGTH_MAX, default: VALUE_LENGTH_MAX }
  for (const [name, lengthMax] of Object.entries(bounds)) {
    const stated = value[name]
    if (stated === undefined || (name === 'enum' && !Array.isArray(stated))) continue
    if (isInexact(stated)) {
      findings.leaveOut(
        [...path, name],
        `The value of ${name} is left out: its number has more digits than a double can hold.`,
      )
      continue
    }
    const isLong = Array.isArray(stated) && name === 'enum' && stated.length > ENUM_MAX
    if (!isLong && JSON.stringify(stated).length <= lengthMax) schema[name] = stated
    else findings.leaveOut([...path, name], `The value of ${name} is too long, and is left out.`)
  }
  return schema
}

/**
 * Whether a whole number may differ from what the document says, as the bounds of 64 bits do. Only
 * the API itself can check such a bound.
 */
const isInexact = (value: unknown): boolean => Number.isInteger(value) && !Number.isSafeInteger(value)

/**
 * The bounds of a number. In OpenAPI 3.0 `exclusiveMinimum` is a flag beside the bound; in 3.1 it
 * is a bound.
 */
function numberBounds(value: Record<string, unknown>): Schema {
  const bounds: Schema = {}
  for (const name of NUMBERS) if (typeof value[name] === 'number' && !isInexact(value[name])) bounds[name] = value[name]
  for (const [inclusive, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof value[exclusive] === 'number' && !isInexact(value[exclusive])) bounds[exclusive] = value[exclusive]
    if (value[exclusive] !== true || bounds[inclusive] === undefined) continue
    bounds[exclusive] = bounds[inclusive]
    delete bounds[inclusive]
  }
  return bounds
}

/**
 * The description of a value, with its format and its pattern in words, because no other keyword
 * here holds them.
 */
function descriptionOf({ description, title, format, pattern }: Record<string, unknown>): string {
  const words = typeof description === 'string' ? description : typeof title === 'string' ? title : ''
  const form = typeof format === 'string' ? `Format: ${shortened(format, PATTERN_MAX)}.` : ''
  const expression = typeof pattern === 'string' ? `Pattern: ${shortened(pattern, PATTERN_MAX)}` : ''
  return [shortened(words, DESCRIPTION_MAX), form, expression].filter(Boolean).join(' ')
}
