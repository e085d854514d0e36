import { isObject } from '../json.ts'
import type { Schema } from './schemas.ts'

const DEPTH_MAX = 8

/** What a text of a format looks like. */
const FORMATS: Record<string, string> = {
  date: '2026-01-15',
  'date-time': '2026-01-15T09:30:00Z',
  email: 'ada@example.org',
  hostname: 'www.example.org',
  uri: 'https://www.example.org/',
  url: 'https://www.example.org/',
  uuid: '7f9c24e8-3b12-4fef-91e0-3b5d7a1c5a10',
}

/** A value that fits a schema, for a document that gives no example. */
export function madeValue(schema: Schema, depth = 0): unknown {
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
      return depth >= DEPTH_MAX || schema.items === undefined ? [] : [madeValue(schema.items as Schema, depth + 1)]
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

function madeNumber({ minimum, maximum, exclusiveMinimum, multipleOf }: Schema): number {
  const least = typeof minimum === 'number' ? minimum : typeof exclusiveMinimum === 'number' ? exclusiveMinimum + 1 : 1
  const step = typeof multipleOf === 'number' && multipleOf > 0 ? multipleOf : undefined
  const value = step === undefined ? least : Math.ceil(least / step) * step
  return typeof maximum === 'number' && value > maximum ? maximum : value
}

function madeText({ minLength, maxLength, description }: Schema): string {
  const [, format = ''] = /Format: ([\w-]+)\./.exec(String(description ?? '')) ?? []
  const text = FORMATS[format] ?? 'text'
  const longer = typeof minLength === 'number' ? text.padEnd(Math.min(minLength, 1_000), 'x') : text
  return typeof maxLength === 'number' ? longer.slice(0, maxLength) : longer
}
