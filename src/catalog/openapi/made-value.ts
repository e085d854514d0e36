import { Check } from 'typebox/schema'
import { isObject } from '../json.ts'
import { inTypeOf } from './example-values.ts'
import { EXAMPLE, type Schema } from './schema-keywords.ts'

const DEPTH_MAX = 8
const ITEMS_MAX = 50

/** An example of a text for each format. */
const FORMATS: Record<string, string> = {
  date: '2026-01-15',
  'date-time': '2026-01-15T09:30:00Z',
  email: 'ada@example.org',
  hostname: 'www.example.org',
  uri: 'https://www.example.org/',
  url: 'https://www.example.org/',
  uuid: '7f9c24e8-3b12-4fef-91e0-3b5d7a1c5a10',
}

/** A value that fits a schema, made of the examples of its parts if there are any. */
export function madeValue(schema: Schema, depth = 0): unknown {
  const example = inTypeOf(schema, Reflect.get(schema, EXAMPLE))
  if (example !== undefined && Check(schema, example)) return example
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined) return schema.default
  if (Array.isArray(schema.enum)) return schema.enum.find((value) => value !== null) ?? null
  const { anyOf } = schema
  if (Array.isArray(anyOf)) return madeValue((anyOf as Schema[]).find(({ type }) => type !== 'null') ?? {}, depth)
  const type = [schema.type].flat().find((name) => name !== 'null')
  switch (type) {
    case 'object':
      return madeObject(schema, depth)
    case 'array':
      return madeList(schema, depth)
    case 'integer':
    case 'number':
      return madeNumber(schema)
    case 'boolean':
      return true
    case 'string':
      return madeText(schema)
    default:
      return null
  }
}

function madeObject({ properties, additionalProperties }: Schema, depth: number): Record<string, unknown> {
  if (depth >= DEPTH_MAX) return {}
  if (isObject(properties)) {
    return Object.fromEntries(
      Object.entries(properties).map(([name, inner]) => [name, madeValue(inner as Schema, depth + 1)]),
    )
  }
  return isObject(additionalProperties) ? { name: madeValue(additionalProperties, depth + 1) } : {}
}

function madeList({ items, minItems, maxItems }: Schema, depth: number): unknown[] {
  const wanted = Math.min(Math.max(1, Number(minItems ?? 1)), Number(maxItems ?? ITEMS_MAX), ITEMS_MAX)
  const length = depth >= DEPTH_MAX || items === undefined ? 0 : wanted
  return Array.from({ length }, () => madeValue(items as Schema, depth + 1))
}

/** The first number that fits a schema, among its bounds and numbers between them. */
function madeNumber(schema: Schema): number {
  const bound = (name: string, none: number): number => (typeof schema[name] === 'number' ? schema[name] : none)
  const least = Math.max(bound('minimum', -Infinity), bound('exclusiveMinimum', -Infinity))
  const most = Math.min(bound('maximum', Infinity), bound('exclusiveMaximum', Infinity))
  const step = Math.abs(bound('multipleOf', schema.type === 'integer' ? 1 : 0))
  const start = least > -Infinity ? least : Math.min(1, most)
  const multiples = [Math.ceil(start / step), Math.ceil(start / step) + 1, Math.floor(start / step)]
  const candidates =
    step > 0 ? multiples.map((count) => count * step) : [start, start + 1, (start + most) / 2, start - 1]
  return candidates.find((value) => Number.isFinite(value) && Check(schema, value)) ?? start
}

function madeText({ minLength, maxLength, description }: Schema): string {
  const [, format = ''] = /Format: ([\w-]+)\./.exec(String(description ?? '')) ?? []
  const text = FORMATS[format] ?? 'text'
  const longer = typeof minLength === 'number' ? text.padEnd(Math.min(minLength, 1_000), 'x') : text
  return typeof maxLength === 'number' ? longer.slice(0, maxLength) : longer
}
