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

/**
 * Values of the schemas of one document as text, in which each option of a choice has the members
 * that stand beside the choice.
 */
const WRITTEN_MAX = 250_000

const DEPTH_MAX = 64

/** Longest description of a member, characters: models read descriptions. */
const DESCRIPTION_MAX = 300

/** Longest pattern that a description shows, characters. */
const PATTERN_MAX = 80

const ENUM_MAX = 1_000

/** Longest enumeration, and longest default or constant, as JSON, characters. */
const ENUM_LENGTH_MAX = 20_000
const VALUE_LENGTH_MAX = 2_000

/**
 * Whether the values go to the upstream or come from it: members that are read-only, or write-only,
 * are on one way alone.
 */
export type Direction = 'request' | 'answer'

const NUMBERS = ['minimum', 'maximum', 'multipleOf'] as const
const LENGTHS = ['minLength', 'maxLength', 'minItems', 'maxItems'] as const
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/** Keywords that restrict values, and that the gateway does not validate with. */
const UNREAD = [
  ...['pattern', 'not', 'if', 'then', 'else', 'contains', 'minContains', 'maxContains', 'prefixItems', 'uniqueItems'],
  ...['additionalItems', 'unevaluatedItems', 'unevaluatedProperties', 'patternProperties', 'propertyNames'],
  ...['minProperties', 'maxProperties', 'dependencies', 'dependentRequired', 'dependentSchemas'],
  ...['$dynamicRef', '$recursiveRef'],
]

/**
 * Writes schemas of a document out. A reference that leads back to a schema around it becomes a
 * schema that anything fits. Patterns do not validate, because Node cannot stop an expression that
 * takes for ever: they become words.
 */
export class SchemaReader {
  readonly #document: OpenApiDocument
  readonly #unread = new Map<string, { path: Path; count: number }>()
  readonly #sizes = new Map<object, number>()
  #count = 0
  #written = 0

  constructor(document: OpenApiDocument) {
    this.#document = document
  }

  /**
   * @throws Unreadable when a reference leads nowhere, or the schemas of the document exceed their
   *   bound
   */
  read(schema: Located, direction: Direction): Schema {
    const written = this.#read(schema, { direction, around: [], depth: 0 })
    this.#spend(writtenSize(written, this.#sizes), schema.path)
    return written
  }

  /** A description as it is shown. */
  words(text: string): string {
    return shortened(text, DESCRIPTION_MAX)
  }

  /** Reports the keywords with which nothing is validated, each once. */
  reportUnread(): void {
    for (const [keyword, { path, count }] of this.#unread) {
      const others = count === 1 ? '' : ` here and at ${count - 1} other ${count === 2 ? 'place' : 'places'}`
      this.#document.findings.leaveOut(path, `The keyword ${keyword} does not validate${others}.`)
    }
  }

  #read(schema: Located, reading: Reading): Schema {
    const { value, path } = schema
    this.#count += 1
    if (this.#count > SCHEMAS_MAX) this.#fail(path, `are more than ${SCHEMAS_MAX}`)
    if (reading.depth > DEPTH_MAX) this.#fail(path, `are nested deeper than ${DEPTH_MAX}`)
    if (typeof value === 'boolean') return {}
    if (!isObject(value)) {
      this.#document.findings.error(path, 'A schema must be an object.')
      return {}
    }
    if (reading.around.includes(value)) return {}
    const inner = { ...reading, around: [...reading.around, value] }
    return value.$ref === undefined
      ? this.#plain(value, path, { ...inner, depth: reading.depth + 1 })
      : this.#reference(value, path, inner)
  }

  /** What stands beside a reference holds as well (OpenAPI 3.1), and its description wins. */
  #reference(value: Record<string, unknown>, path: Path, reading: Reading): Schema {
    // References that lead from one to the next and back have no end that could be written out.
    this.#document.resolve({ value, path })
    const { $ref: _, ...beside } = value
    const target = this.#read(this.#document.follow({ value, path }), reading)
    if (Object.keys(beside).length === 0) return target
    return this.#merged([this.#plain(beside, path, reading), target], path)
  }

  #plain(value: Record<string, unknown>, path: Path, reading: Reading): Schema {
    const own = this.#keywords(value, path, reading)
    const parts = this.#list(value.allOf, [...path, 'allOf'], reading)
    const options = [
      ...this.#list(value.anyOf, [...path, 'anyOf'], reading),
      ...this.#list(value.oneOf, [...path, 'oneOf'], reading),
    ]
    const merged = parts.length === 0 ? own : this.#merged([own, ...parts], path)
    return this.#withOptions(merged, options, path)
  }

  #list(schemas: unknown, path: Path, reading: Reading): Schema[] {
    if (schemas === undefined) return []
    if (!Array.isArray(schemas)) {
      this.#document.findings.error(path, 'A choice or a combination of schemas must be a list.')
      return []
    }
    return schemas.map((value, index) => this.#read({ value, path: [...path, index] }, reading))
  }

  #keywords(value: Record<string, unknown>, path: Path, reading: Reading): Schema {
    const schema: Schema = { ...this.#typeOf(value, path), ...this.#values(value, path) }
    const description = descriptionOf(value)
    if (description !== '') schema.description = description
    for (const name of NUMBERS) if (typeof value[name] === 'number') schema[name] = value[name]
    for (const name of LENGTHS)
      if (Number.isSafeInteger(value[name]) && Number(value[name]) >= 0) schema[name] = value[name]
    Object.assign(schema, exclusiveBounds(value))
    // Answers go out whether or not they fit.
    if (reading.direction === 'request') this.#noteUnread(value, path)
    if (value.items !== undefined) schema.items = this.#read({ value: value.items, path: [...path, 'items'] }, reading)
    if (isObject(value.properties)) Object.assign(schema, this.#properties(value, path, reading))
    else if (value.properties !== undefined)
      this.#document.findings.error([...path, 'properties'], 'The properties of a schema must be an object.')
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

  /** `nullable` of OpenAPI 3.0 is a type of JSON Schema. */
  #typeOf({ type, nullable, enum: values }: Record<string, unknown>, path: Path): Schema {
    const written = [type].flat().filter((name) => name !== undefined)
    const named = written.filter((name): name is string => typeof name === 'string' && TYPES.has(name))
    const unknown = written.find((name) => !named.some((known) => known === name))
    if (unknown !== undefined) {
      const shown = shortened(String(unknown), 40)
      this.#document.findings.leaveOut([...path, 'type'], `The type ${shown} is none of JSON Schema, and is left out.`)
    }
    if (named.length === 0) return {}
    const isNullable = nullable === true || (Array.isArray(values) && values.includes(null))
    const types = isNullable && !named.includes('null') ? [...named, 'null'] : named
    return { type: types.length === 1 ? types[0] : types }
  }

  /** Values that a schema states, unless they are too long for a catalog. */
  #values(value: Record<string, unknown>, path: Path): Schema {
    const schema: Schema = {}
    const bounds = { enum: ENUM_LENGTH_MAX, const: VALUE_LENGTH_MAX, default: VALUE_LENGTH_MAX }
    for (const [name, lengthMax] of Object.entries(bounds)) {
      const stated = value[name]
      if (stated === undefined || (name === 'enum' && !Array.isArray(stated))) continue
      const isLong = Array.isArray(stated) && name === 'enum' && stated.length > ENUM_MAX
      if (!isLong && JSON.stringify(stated).length <= lengthMax) schema[name] = stated
      else this.#document.findings.leaveOut([...path, name], `The value of ${name} is too long, and is left out.`)
    }
    return schema
  }

  #noteUnread(value: Record<string, unknown>, path: Path): void {
    for (const keyword of UNREAD) {
      if (value[keyword] === undefined) continue
      const known = this.#unread.get(keyword) ?? { path: [...path, keyword], count: 0 }
      this.#unread.set(keyword, { ...known, count: known.count + 1 })
    }
  }

  #properties(value: Record<string, unknown>, path: Path, reading: Reading): Schema {
    const properties: Record<string, Schema> = {}
    const hidden = reading.direction === 'request' ? 'readOnly' : 'writeOnly'
    for (const [name, inner] of Object.entries(Object(value.properties))) {
      const at = { value: inner, path: [...path, 'properties', name] }
      const { value: resolved } = this.#document.resolve(at)
      if ([inner, resolved].some((schema) => isObject(schema) && schema[hidden] === true)) continue
      properties[name] = this.#read(at, reading)
    }
    const required = texts(value.required).filter((name) => Object.hasOwn(properties, name))
    return { properties, ...(required.length === 0 ? {} : { required: [...new Set(required)] }) }
  }

  /** A schema that has the members and bounds of all; what an earlier schema says wins. */
  #merged(parts: Schema[], path: Path): Schema {
    const merged: Schema = {}
    const properties: Record<string, Schema> = {}
    const required = new Set<string>()
    for (const part of parts) {
      for (const name of texts(part.required)) required.add(name)
      for (const [name, value] of Object.entries(part)) if (!Object.hasOwn(merged, name)) merged[name] = value
      if (!isObject(part.properties)) continue
      const members = Object.entries(part.properties as Record<string, Schema>)
      this.#spend(members.length, path)
      for (const [name, schema] of members) {
        const known = Object.hasOwn(properties, name) ? properties[name] : undefined
        properties[name] = known ? this.#merged([known, schema], path) : schema
      }
    }
    if (Object.hasOwn(merged, 'properties')) merged.properties = properties
    if (required.size > 0) merged.required = [...required]
    // Of parts that each know their own members alone, none may forbid the members of the others.
    if (merged.additionalProperties === false) delete merged.additionalProperties
    return merged
  }

  /**
   * A choice between schemas. Beside members of its own it is a choice between objects that have
   * these too.
   */
  #withOptions(schema: Schema, options: Schema[], path: Path): Schema {
    if (options.length === 0) return schema
    const [only] = options
    if (only && options.length === 1) return this.#merged([schema, only], path)
    const { description, ...rest } = schema
    const choices =
      Object.keys(rest).length === 0 ? options : options.map((option) => this.#merged([rest, option], path))
    return { anyOf: choices, ...(description === undefined ? {} : { description }) }
  }

  #spend(values: number, path: Path): void {
    this.#written += values
    if (this.#written > WRITTEN_MAX) this.#fail(path, `have more than ${WRITTEN_MAX} values`)
  }

  /** Fails closed. */
  #fail(path: Path, bound: string): never {
    const text = `The schemas of the document ${bound} once their references are written out.`
    this.#document.findings.error(path, text)
    throw new Unreadable(bound)
  }
}

/** Values of a schema as text, in which a part that is shared stands each time. */
function writtenSize(value: unknown, sizes: Map<object, number>): number {
  if (typeof value !== 'object' || value === null) return 1
  const known = sizes.get(value)
  if (known !== undefined) return known
  let size = 1
  for (const inner of Object.values(value)) size += writtenSize(inner, sizes)
  sizes.set(value, size)
  return size
}

interface Reading {
  direction: Direction
  /** The schemas that this schema stands in. */
  around: unknown[]
  depth: number
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []

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
  const forms = new Map<string, Map<string, Schema>>()
  for (const option of options) {
    for (const [name, inner] of Object.entries((option.properties ?? {}) as Record<string, Schema>)) {
      forms.set(name, (forms.get(name) ?? new Map()).set(JSON.stringify(inner), inner))
    }
  }
  const properties: Record<string, Schema> = {}
  for (const [name, different] of forms) {
    const [only = {}, ...others] = different.values()
    properties[name] = others.length === 0 ? only : { anyOf: [only, ...others] }
  }
  const required = texts(options[0]?.required).filter((name) =>
    options.every((option) => texts(option.required).includes(name)),
  )
  return { ...rest, type: 'object', properties, ...(required.length === 0 ? {} : { required }) }
}
