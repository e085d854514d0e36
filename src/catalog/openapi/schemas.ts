import { isObject } from '../json.ts'
import type { Path } from './places.ts'
import type { Located, OpenApiDocument } from './references.ts'
import { Unreadable } from './report.ts'
import { shortened } from './words.ts'

/**
 * A schema as the gateway validates with it and shows it: JSON Schema without references, patterns,
 * titles and ids.
 */
export type Schema = Record<string, unknown>

/** Schemas of one document after references are written out: each use of a reference counts. */
const SCHEMAS_MAX = 50_000

const DEPTH_MAX = 64

/** Longest description of a member, characters: models read descriptions. */
const DESCRIPTION_MAX = 300

/** Longest pattern that a description shows, characters. */
const PATTERN_MAX = 80

const ENUM_MAX = 1_000

/**
 * Whether the values go to the upstream or come from it: members that are read-only, or write-only,
 * are on one way alone.
 */
export type Direction = 'request' | 'answer'

const NUMBERS = ['minimum', 'maximum', 'multipleOf'] as const
const LENGTHS = ['minLength', 'maxLength', 'minItems', 'maxItems'] as const
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/**
 * Writes schemas of a document out. A reference that leads back to a schema around it becomes a
 * schema that anything fits. Patterns do not validate, because Node cannot stop an expression that
 * takes for ever: they become words.
 */
export class SchemaReader {
  readonly #document: OpenApiDocument
  #count = 0

  constructor(document: OpenApiDocument) {
    this.#document = document
  }

  /**
   * @throws Unreadable when a reference leads nowhere, or the schemas of the document exceed their
   *   bound
   */
  read(schema: Located, direction: Direction): Schema {
    return this.#read(schema, { direction, around: [], depth: 0 })
  }

  /** A description as it is shown. */
  words(text: string): string {
    return shortened(text, DESCRIPTION_MAX)
  }

  #read(schema: Located, reading: Reading): Schema {
    const { value, path } = this.#document.resolve(schema)
    this.#count += 1
    if (this.#count > SCHEMAS_MAX || reading.depth > DEPTH_MAX) {
      const bound = this.#count > SCHEMAS_MAX ? `are more than ${SCHEMAS_MAX}` : `are nested deeper than ${DEPTH_MAX}`
      this.#document.findings.error(
        schema.path,
        `The schemas of the document ${bound} once their references are written out.`,
      )
      throw new Unreadable(bound)
    }
    if (!isObject(value) || reading.around.includes(value)) return {}
    const inner = { ...reading, around: [...reading.around, value], depth: reading.depth + 1 }
    const own = this.#keywords(value, path, inner)
    const parts = this.#list(value.allOf, [...path, 'allOf'], inner)
    const options = [
      ...this.#list(value.anyOf, [...path, 'anyOf'], inner),
      ...this.#list(value.oneOf, [...path, 'oneOf'], inner),
    ]
    const merged = parts.reduce(both, own)
    return withOptions(merged, options)
  }

  #list(schemas: unknown, path: Path, reading: Reading): Schema[] {
    if (!Array.isArray(schemas)) return []
    return schemas.map((value, index) => this.#read({ value, path: [...path, index] }, reading))
  }

  #keywords(value: Record<string, unknown>, path: Path, reading: Reading): Schema {
    const schema: Schema = { ...typeOf(value) }
    const description = descriptionOf(value)
    if (description !== '') schema.description = description
    if (Array.isArray(value.enum) && value.enum.length <= ENUM_MAX) schema.enum = value.enum
    if (value.const !== undefined) schema.const = value.const
    if (value.default !== undefined) schema.default = value.default
    for (const name of NUMBERS) if (typeof value[name] === 'number') schema[name] = value[name]
    for (const name of LENGTHS)
      if (Number.isSafeInteger(value[name]) && Number(value[name]) >= 0) schema[name] = value[name]
    Object.assign(schema, exclusiveBounds(value))
    if (value.items !== undefined) schema.items = this.#read({ value: value.items, path: [...path, 'items'] }, reading)
    if (isObject(value.properties)) Object.assign(schema, this.#properties(value, path, reading))
    const { additionalProperties } = value
    if (isObject(additionalProperties)) {
      schema.additionalProperties = this.#read(
        { value: additionalProperties, path: [...path, 'additionalProperties'] },
        reading,
      )
    } else if (additionalProperties === false && reading.direction === 'request') schema.additionalProperties = false
    if (schema.type === undefined) {
      if (schema.properties !== undefined || schema.additionalProperties !== undefined) schema.type = 'object'
      else if (schema.items !== undefined) schema.type = 'array'
    }
    return schema
  }

  #properties(value: Record<string, unknown>, path: Path, reading: Reading): Schema {
    const properties: Record<string, Schema> = {}
    const hidden = reading.direction === 'request' ? 'readOnly' : 'writeOnly'
    for (const [name, inner] of Object.entries(Object(value.properties))) {
      const at = { value: inner, path: [...path, 'properties', name] }
      const { value: resolved } = this.#document.resolve(at)
      if (isObject(resolved) && resolved[hidden] === true) continue
      properties[name] = this.#read(at, reading)
    }
    const required = texts(value.required).filter((name) => Object.hasOwn(properties, name))
    return { properties, ...(required.length === 0 ? {} : { required: [...new Set(required)] }) }
  }
}

interface Reading {
  direction: Direction
  /** The schemas that this schema stands in. */
  around: unknown[]
  depth: number
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []

/** `nullable` of OpenAPI 3.0 is a type of JSON Schema. */
function typeOf({ type, nullable, enum: values }: Record<string, unknown>): Schema {
  const named = [type].flat().filter((name): name is string => typeof name === 'string' && TYPES.has(name))
  if (named.length === 0) return {}
  const isNullable = nullable === true || (Array.isArray(values) && values.includes(null))
  const types = isNullable && !named.includes('null') ? [...named, 'null'] : named
  return { type: types.length === 1 ? types[0] : types }
}

/** Flags beside a bound in OpenAPI 3.0, bounds of their own in 3.1. */
function exclusiveBounds({ exclusiveMinimum, exclusiveMaximum, minimum, maximum }: Record<string, unknown>): Schema {
  const bound = (exclusive: unknown, inclusive: unknown) =>
    typeof exclusive === 'number'
      ? exclusive
      : exclusive === true && typeof inclusive === 'number'
        ? inclusive
        : undefined
  const least = bound(exclusiveMinimum, minimum)
  const most = bound(exclusiveMaximum, maximum)
  return {
    ...(least === undefined ? {} : { exclusiveMinimum: least }),
    ...(most === undefined ? {} : { exclusiveMaximum: most }),
  }
}

/**
 * What the document says of a value, with what no other keyword here says: its format and its
 * pattern.
 */
function descriptionOf({ description, title, format, pattern }: Record<string, unknown>): string {
  const words = typeof description === 'string' ? description : typeof title === 'string' ? title : ''
  const form = typeof format === 'string' ? `Format: ${shortened(format, PATTERN_MAX)}.` : ''
  const expression = typeof pattern === 'string' ? `Pattern: ${shortened(pattern, PATTERN_MAX)}` : ''
  return [shortened(words, DESCRIPTION_MAX), form, expression].filter(Boolean).join(' ')
}

/** A schema that has the members and bounds of both. */
function both(one: Schema, other: Schema): Schema {
  const merged: Schema = { ...other, ...one }
  if (isObject(one.properties) && isObject(other.properties)) {
    const properties: Record<string, Schema> = { ...(one.properties as Record<string, Schema>) }
    for (const [name, schema] of Object.entries(other.properties as Record<string, Schema>)) {
      properties[name] = Object.hasOwn(properties, name) ? both(properties[name] ?? {}, schema) : schema
    }
    merged.properties = properties
  }
  const required = [...new Set([...texts(one.required), ...texts(other.required)])]
  if (required.length > 0) merged.required = required
  // Of parts that each know their own members alone, none may forbid the members of the others.
  if (merged.additionalProperties === false) delete merged.additionalProperties
  return merged
}

/**
 * A choice between schemas. Beside members of its own it is a choice between objects that have
 * these too.
 */
function withOptions(schema: Schema, options: Schema[]): Schema {
  if (options.length === 0) return schema
  const [only] = options
  if (only && options.length === 1) return both(schema, only)
  const { description, ...rest } = schema
  const choices = Object.keys(rest).length === 0 ? options : options.map((option) => both(rest, option))
  return { anyOf: choices, ...(description === undefined ? {} : { description }) }
}

/** The schema of data, which are an object: other answers become a member of an object. */
export function dataSchema(
  schema: Schema | undefined,
): Schema & { type: 'object'; properties: Record<string, Schema> } {
  if (schema === undefined) return { type: 'object', properties: {} }
  const form = flattened(schema)
  if (form.type === 'array') return { type: 'object', properties: { items: form }, required: ['items'] }
  if (form.type === 'object' || form.type === undefined) {
    return { ...form, type: 'object', properties: (form.properties ?? {}) as Record<string, Schema> }
  }
  return { type: 'object', properties: { value: form }, required: ['value'] }
}

/** A choice between objects as one object, of whose members none is certain but what all have. */
function flattened(schema: Schema): Schema {
  const { anyOf, type, ...rest } = schema
  const kind = Array.isArray(type) ? type.find((name) => name !== 'null') : type
  if (!Array.isArray(anyOf)) return kind === undefined ? rest : { ...rest, type: kind }
  const options = (anyOf as Schema[]).map(flattened).filter((option) => option.type !== 'null')
  if (options.length === 0 || options.some((option) => option.type !== 'object')) {
    return options.every((option) => option.type === options[0]?.type) ? { ...rest, ...options[0] } : { ...rest }
  }
  const properties: Record<string, Schema> = {}
  for (const option of options) {
    for (const [name, inner] of Object.entries((option.properties ?? {}) as Record<string, Schema>)) {
      const known = properties[name]
      const isSame = known === undefined || JSON.stringify(known) === JSON.stringify(inner)
      properties[name] = isSame ? inner : { anyOf: [known, inner] }
    }
  }
  const required = texts(options[0]?.required).filter((name) =>
    options.every((option) => texts(option.required).includes(name)),
  )
  return { ...rest, type: 'object', properties, ...(required.length === 0 ? {} : { required }) }
}
