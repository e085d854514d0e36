/**
 * Fields of an endpoint's data. Each says once what the data hold, by its schema, and where an
 * upstream's answer has it, by its reader. `record` makes the schema of an object of them, and the
 * function that reads one from an answer.
 *
 * Reading never throws, whatever JSON an upstream sends. A `field` that is missing or of another
 * type is null, or an empty list. A `required` field that is missing leaves no record, and so does
 * a `readable` list that cannot be read: reading gives undefined.
 */
import Type, { type Static, type TArray, type TNull, type TObject, type TSchema, type TUnion } from 'typebox'
import {
  filledText,
  flag,
  htmlDecoded,
  integer,
  isObject,
  items,
  members,
  nullable,
  number,
  numeric,
  objects,
  text,
} from './json.ts'

/** The members of the JSON object that a record is read from. */
export type Source = Record<string, unknown>

/**
 * Where a field stands: names of members joined by dots, or a function of the source that gives the
 * raw value.
 */
export type From = string | ((source: Source) => unknown)

/**
 * One member of the data. Reading gives undefined only if `Missing` says so: the field is required
 * and missing.
 */
export interface Field<Schema extends TSchema = TSchema, Missing extends undefined = never> {
  schema: Schema
  read: (source: Source) => Static<Schema> | Missing
}

export type Fields = Record<string, Field<TSchema, undefined>>

type ObjectOf<Of extends Fields> = TObject<{ [Name in keyof Of]: Of[Name]['schema'] }>
/** `undefined` when one of the fields is required, else `never`. */
type MissingOf<Of extends Fields> = Extract<ReturnType<Of[keyof Of]['read']>, undefined>

/** An object of the data: its schema, and its reader. */
export interface DataRecord<Of extends Fields> {
  fields: Of
  schema: ObjectOf<Of>
  /**
   * Reads one object; what is no object reads as one without members. Undefined if a required
   * field is missing.
   */
  read: (source: unknown) => Static<ObjectOf<Of>> | MissingOf<Of>
}

/** Declares an object of the data by its fields, in the order of the data. */
export function record<Of extends Fields>(fields: Of, description?: string): DataRecord<Of> {
  const named = Object.entries(fields)
  const schemas = Object.fromEntries(named.map(([name, { schema }]) => [name, schema]))
  const read = (source: unknown) => {
    const from = members(source)
    const data: Source = {}
    for (const [name, field] of named) {
      const value = field.read(from)
      if (value === undefined) return undefined as MissingOf<Of>
      data[name] = value
    }
    return data as Static<ObjectOf<Of>>
  }
  return {
    fields,
    schema: Type.Object(schemas, description === undefined ? {} : { description }) as ObjectOf<Of>,
    read,
  }
}

/** A schema with its description, and the reader of its values. */
interface Kind<Schema extends TSchema> {
  schema: (options?: { description: string }) => Schema
  read: (value: unknown) => Static<Schema> | null
}

const kinds = {
  text: { schema: Type.String, read: text },
  /** Null also when it is empty or blank. */
  filledText: { schema: Type.String, read: filledText },
  /** HTML character references are decoded. */
  htmlDecoded: { schema: Type.String, read: htmlDecoded },
  number: { schema: Type.Number, read: number },
  /** A number, also when the upstream writes it as text. */
  numeric: { schema: Type.Number, read: numeric },
  /** An integer that the document calls a number. */
  wholeNumber: { schema: Type.Number, read: integer },
  integer: { schema: Type.Integer, read: integer },
  flag: { schema: Type.Boolean, read: flag },
}

function nullableField<Schema extends TSchema>({ schema, read }: Kind<Schema>) {
  return (from: From, description: string): Field<TUnion<[Schema, TNull]>> => {
    const value = valueAt(from)
    const reader = (source: Source) => read(value(source))
    return { schema: nullable(schema({ description })), read: reader as Field<TUnion<[Schema, TNull]>>['read'] }
  }
}

function requiredField<Schema extends TSchema>({ schema, read }: Kind<Schema>) {
  return (from: From, description: string): Field<Schema, undefined> => {
    const value = valueAt(from)
    return { schema: schema({ description }), read: (source) => read(value(source)) ?? undefined }
  }
}

function listField<Schema extends TSchema>({ schema, read }: Kind<Schema>) {
  return (from: From, description: string): Field<TArray<Schema>> => {
    const value = valueAt(from)
    const readList = (source: Source) => items(value(source)).flatMap((item) => read(item) ?? [])
    return { schema: Type.Array(schema(), { description }), read: readList as Field<TArray<Schema>>['read'] }
  }
}

/** Fields that are null, or an empty list, if the upstream's answer does not have them. */
export const field = {
  text: nullableField(kinds.text),
  filledText: nullableField(kinds.filledText),
  htmlDecoded: nullableField(kinds.htmlDecoded),
  number: nullableField(kinds.number),
  numeric: nullableField(kinds.numeric),
  wholeNumber: nullableField(kinds.wholeNumber),
  integer: nullableField(kinds.integer),
  flag: nullableField(kinds.flag),

  /** The values of a list that are of the kind, without the others. */
  texts: listField(kinds.text),
  numbers: listField(kinds.number),
  integers: listField(kinds.integer),

  /**
   * A nested object, which is always there: its fields are null if the upstream has no such object.
   */
  record<Of extends Fields>(from: From, description: string, fields: Of): Field<ObjectOf<Of>, MissingOf<Of>> {
    const value = valueAt(from)
    const nested = record(fields, description)
    return { schema: nested.schema, read: (source) => nested.read(value(source)) }
  },

  /** A nested object; null if the upstream has none. */
  nullableRecord<Of extends Fields>(from: From, description: string, fields: Of) {
    const value = valueAt(from)
    const nested = record(fields, description)
    const read = (source: Source) => {
      const found = value(source)
      return isObject(found) ? (nested.read(found) ?? null) : null
    }
    return { schema: nullable(nested.schema), read } as Field<TUnion<[ObjectOf<Of>, TNull]>>
  },

  /**
   * The objects of a list; other items are left out, and so are objects in which a required field
   * is missing.
   */
  records<Of extends Fields>(from: From, description: string, fields: Of): Field<TArray<ObjectOf<Of>>> {
    const value = valueAt(from)
    const { schema, read } = record(fields)
    const readAll = (source: Source) => objects(value(source)).flatMap((item) => read(item) ?? [])
    return { schema: Type.Array(schema, { description }), read: readAll } as Field<TArray<ObjectOf<Of>>>
  },

  /** A field with a schema and a reader of its own. */
  computed: <Schema extends TSchema>(schema: Schema, read: (source: Source) => Static<Schema>): Field<Schema> => ({
    schema,
    read,
  }),
}

/**
 * Fields without which there is no record: reading it gives undefined if the upstream's answer has
 * none.
 */
export const required = {
  text: requiredField(kinds.text),
  number: requiredField(kinds.number),
  integer: requiredField(kinds.integer),
  flag: requiredField(kinds.flag),

  /** A field that the document calls nullable, though no record is null. */
  notNull: <Schema extends TSchema>({ schema, read }: Field<Schema>): Field<Schema, undefined> => ({
    schema,
    read: (source) => read(source) ?? undefined,
  }),

  /** As the `field`, missing if there is no list, or if nothing can be read of its items. */
  records<Of extends Fields>(from: From, description: string, fields: Of) {
    return listOf(from, field.records(from, description, fields))
  },

  /**
   * A record of each item of a list; an item that is no object reads as an object without members.
   * Missing without a list, and if nothing can be read of its items.
   */
  recordOfEach<Of extends Fields>(from: From, description: string, fields: Of) {
    const { schema, read } = record(fields)
    const value = valueAt(from)
    const readEach = (source: Source) => items(value(source)).flatMap((item) => read(item) ?? [])
    const list = { schema: Type.Array(schema, { description }), read: readEach } as Field<TArray<ObjectOf<Of>>>
    return listOf(from, list)
  },

  /** As the `field`; undefined if it is missing. */
  computed: <Schema extends TSchema>(
    schema: Schema,
    read: (source: Source) => Static<Schema> | undefined,
  ): Field<Schema, undefined> => ({ schema, read }),
}

/**
 * Lists that an upstream may leave out, and whose emptiness says something. What stands in place of
 * the list and cannot be read leaves no record.
 */
export const readable = {
  texts: (from: From, description: string) => listOrNone(from, field.texts(from, description)),
  integers: (from: From, description: string) => listOrNone(from, field.integers(from, description)),
  records: <Of extends Fields>(from: From, description: string, fields: Of) =>
    listOrNone(from, field.records(from, description, fields)),
}

function listOrNone<Schema extends TArray>(from: From, list: Field<Schema>): Field<Schema, undefined> {
  const value = valueAt(from)
  const read = (source: Source) => {
    const given = value(source) ?? []
    const found = list.read(source)
    const isRead = Array.isArray(given) && (given.length === 0 || items(found).length > 0)
    return isRead ? found : undefined
  }
  return { schema: list.schema, read }
}

/**
 * A list whose items have another form than they had must not be told as a list of nothing, or of
 * items without values: callers would believe it, and the gateway would store it.
 */
function listOf<Schema extends TArray>(from: From, list: Field<Schema>): Field<Schema, undefined> {
  const value = valueAt(from)
  const read = (source: Source) => {
    const given = value(source)
    if (!Array.isArray(given)) return undefined
    const found = list.read(source)
    const isRead = given.some(isObject) && items(found).length > 0 && (isFilled(found) || !isFilled(given))
    return isRead || given.length === 0 ? found : undefined
  }
  return { schema: list.schema, read }
}

/** Whether a value holds something other than null, blank texts and empty lists. */
function isFilled(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isFilled)
  if (isObject(value)) return Object.values(value).some(isFilled)
  return value !== null && !(typeof value === 'string' && value.trim() === '')
}

/**
 * The raw value of a field. Names lead to own members alone: `constructor` is none of what JSON
 * says.
 */
function valueAt(from: From): (source: Source) => unknown {
  if (typeof from === 'function') return from
  const [name = '', ...deeper] = from.split('.')
  if (deeper.length === 0) return (source) => (Object.hasOwn(source, name) ? source[name] : undefined)
  const inner = valueAt(deeper.join('.'))
  return (source) => (Object.hasOwn(source, name) ? inner(members(source[name])) : undefined)
}
