import { Check } from 'typebox/schema'
import { isObject } from '../json.ts'
import type { Path } from './places.ts'
import type { Located, OpenApiDocument } from './references.ts'
import { Unreadable } from './report.ts'
import { type Schema, statedKeywords } from './schema-keywords.ts'

/** Most schemas of one document after references are expanded. Each use of a reference counts. */
const SCHEMAS_MAX = 50_000

/**
 * Most values of the schemas of one document as text. In the text, each option of a choice repeats
 * the members beside the choice.
 */
const WRITTEN_MAX = 250_000

const DEPTH_MAX = 64

/**
 * Whether values go to the upstream or come from it. Read-only members exist only in answers,
 * write-only members only in requests.
 */
export type Direction = 'request' | 'answer'

/** Keywords that restrict values but that the gateway ignores when it validates. */
const UNREAD = [
  ...['pattern', 'not', 'if', 'then', 'else', 'contains', 'minContains', 'maxContains', 'prefixItems', 'uniqueItems'],
  ...['additionalItems', 'unevaluatedItems', 'unevaluatedProperties', 'patternProperties', 'propertyNames'],
  ...['minProperties', 'maxProperties', 'dependencies', 'dependentRequired', 'dependentSchemas'],
  ...['$dynamicRef', '$recursiveRef'],
]

/**
 * Expands the references of schemas. A recursive reference becomes a schema that anything fits.
 * Patterns are not used for validation, because Node cannot stop a regular expression that takes
 * too long; they become words of the description.
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
   * @throws Unreadable if a reference leads nowhere, or the schemas of the document exceed a limit
   */
  read(schema: Located, direction: Direction): Schema {
    const written = this.#whole(schema, { direction, around: [], depth: 0 })
    this.#spend(writtenSize(written, this.#sizes), schema.path)
    return written
  }

  /** Reports each keyword that the gateway ignores, once. */
  reportUnread(): void {
    for (const [keyword, { path, count }] of this.#unread) {
      const others = count === 1 ? '' : ` here and at ${count - 1} other ${count === 2 ? 'place' : 'places'}`
      this.#document.findings.leaveOut(path, `The gateway ignores the schema keyword ${keyword}${others}.`)
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
    const read =
      value.$ref === undefined
        ? this.#plain(value, path, { ...inner, depth: reading.depth + 1 })
        : this.#reference(value, path, inner)
    return value.nullable === true ? orNull(read) : read
  }

  /** Reads a schema that is no part of another schema, so that all its members are known. */
  #whole(schema: Located, reading: Reading): Schema {
    return withKnownRequired(this.#read(schema, reading))
  }

  /**
   * Resolves a reference. Members beside the reference hold too (OpenAPI 3.1), and a description
   * beside it wins.
   */
  #reference(value: Record<string, unknown>, path: Path, reading: Reading): Schema {
    // This throws for a cycle of bare references, which could not be expanded.
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
      this.#document.findings.error(path, 'The value of anyOf, oneOf or allOf must be a list of schemas.')
      return []
    }
    return schemas.map((value, index) => this.#read({ value, path: [...path, index] }, reading))
  }

  #keywords(value: Record<string, unknown>, path: Path, reading: Reading): Schema {
    const schema = statedKeywords(value, path, this.#document.findings)
    // Answers are passed on whether or not they fit, so ignored keywords matter only in requests.
    if (reading.direction === 'request') this.#noteUnread(value, path)
    if (value.items !== undefined) schema.items = this.#whole({ value: value.items, path: [...path, 'items'] }, reading)
    if (isObject(value.properties)) Object.assign(schema, this.#properties(value, path, reading))
    else if (value.properties !== undefined)
      this.#document.findings.error([...path, 'properties'], 'The properties of a schema must be an object.')
    const required = new Set(texts(value.required))
    if (required.size > 0) schema.required = [...required]
    const { additionalProperties } = value
    if (isObject(additionalProperties)) {
      schema.additionalProperties = this.#whole(
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
      properties[name] = this.#whole(at, reading)
    }
    return { properties }
  }

  /**
   * Merges schemas: the result has the members and bounds of all. If two disagree, the earlier
   * wins.
   */
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
    // If each part allows only its own members, no part may forbid the members of the others.
    if (merged.additionalProperties === false) delete merged.additionalProperties
    const { anyOf, ...beside } = merged
    return Array.isArray(anyOf) ? this.#withOptions(beside, anyOf, path) : merged
  }

  /**
   * Adds a choice between schemas. If the schema has members of its own, each option gets these
   * members too.
   */
  #withOptions(schema: Schema, choice: Schema[], path: Path): Schema {
    const isNullable = Check(schema, null)
    const options = choice.filter(({ type }) => type !== 'null' || isNullable)
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

  /** Fails closed: the document is not read any further. */
  #fail(path: Path, bound: string): never {
    const text = `The schemas of the document ${bound} once their references are expanded.`
    this.#document.findings.error(path, text)
    throw new Unreadable(bound)
  }
}

/**
 * A schema that null fits too. In documents of OpenAPI 3.0, `nullable` stands beside a reference or
 * a choice as often as beside a type.
 */
function orNull(schema: Schema): Schema {
  if (Check(schema, null)) return schema
  const { description, ...rest } = schema
  return { anyOf: [rest, { type: 'null' }], ...(description === undefined ? {} : { description }) }
}

/**
 * Removes the names of members that a schema does not have, such as members that exist only in
 * answers. A part may require members of another part, so only a whole schema knows them.
 */
function withKnownRequired({ required, anyOf, ...schema }: Schema): Schema {
  const known = texts(required).filter((name) => Object.hasOwn(Object(schema.properties), name))
  return {
    ...schema,
    ...(known.length === 0 ? {} : { required: known }),
    ...(Array.isArray(anyOf) ? { anyOf: (anyOf as Schema[]).map(withKnownRequired) } : {}),
  }
}

/** Number of values of a schema as text. A shared part counts at each place. */
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
  /** The schemas that enclose this schema. */
  around: unknown[]
  depth: number
}

export const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
