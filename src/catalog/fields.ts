/**
 * Declares the fields of an endpoint's data. A field has a schema, which says what the data hold,
 * and a reader, which says where the upstream's answer has the value. `record` combines fields into
 * the schema and the reader of an object.
 *
 * Readers never throw, whatever JSON an upstream sends. If a `field` is missing, it becomes null or
 * an empty list, and a value of another type becomes null. If a `required` field is missing, or
 * there is something in place of a list that cannot be read as the list, the reader of the whole
 * record returns undefined.
 */
import Type, {
  type Static,
  type TArray,
  type TNull,
  type TObject,
  type TSchema,
  type TString,
  type TUnion,
} from 'typebox'
import {
  amount,
  calendarDate,
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

/** The members of the JSON object from which a record is read. */
export type Source = Record<string, unknown>

/**
 * Where the upstream's answer has a field: names of members joined by dots, or a function that
 * returns the raw value.
 */
export type From = string | ((source: Source) => unknown)

/**
 * One member of the data. Its reader can return undefined only if the field is required
 * (`Missing`).
 */
interface Field<Schema extends TSchema = TSchema, Missing extends undefined = never> {
  schema: Schema
  read: (source: Source) => Static<Schema> | Missing
}

export type Fields = Record<string, Field<TSchema, undefined>>

type ObjectOf<Of extends Fields> = TObject<{ [Name in keyof Of]: Of[Name]['schema'] }>
/** `undefined` if one of the fields is required, else `never`. */
type MissingOf<Of extends Fields> = Extract<ReturnType<Of[keyof Of]['read']>, undefined>

/** An object of the data: its schema and its reader. */
export interface DataRecord<Of extends Fields> {
  fields: Of
  schema: ObjectOf<Of>
  /**
   * Reads one object. A value that is not an object counts as an object without members. Undefined
   * if a required field is missing.
   */
  read: (source: unknown) => Static<ObjectOf<Of>> | MissingOf<Of>
}

/** Declares an object by its fields, in the order of the data. */
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

/** A schema that takes a description, and the reader of its values. */
interface Kind<Schema extends TSchema> {
  schema: (options?: { description: string }) => Schema
  read: (value: unknown) => Static<Schema> | null
}

const kinds = {
  text: { schema: Type.String, read: text },
  /** A text; null if it is empty or blank. */
  filledText: { schema: Type.String, read: filledText },
  /** A text with decoded HTML character references. */
  htmlDecoded: { schema: Type.String, read: htmlDecoded },
  date: { schema: Type.String, read: calendarDate },
  number: { schema: Type.Number, read: number },
  amount: { schema: Type.Number, read: amount },
  /** A number, or a text that holds a number. */
  numeric: { schema: Type.Number, read: numeric },
  /** An integer whose type in the OpenAPI document is number. */
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
  return (from: From, description: string): Field<TArray<Schema>, undefined> => {
    const value = valueAt(from)
    const readList = (source: Source) => items(value(source)).flatMap((item) => read(item) ?? [])
    const list = { schema: Type.Array(schema(), { description }), read: readList as Field<TArray<Schema>>['read'] }
    return listOrNone(from, list)
  }
}

/**
 * Fields that become null or an empty list if the upstream's answer lacks them. An empty list is an
 * answer, such as "no synonyms". So if the answer has something in place of the list that cannot be
 * read as the list, the reader of the record returns undefined.
 */
export const field = {
  text: nullableField(kinds.text),
  filledText: nullableField(kinds.filledText),
  htmlDecoded: nullableField(kinds.htmlDecoded),
  date: nullableField(kinds.date),
  number: nullableField(kinds.number),
  amount: nullableField(kinds.amount),
  numeric: nullableField(kinds.numeric),
  wholeNumber: nullableField(kinds.wholeNumber),
  integer: nullableField(kinds.integer),
  flag: nullableField(kinds.flag),

  /** The items of a list that are of the type that the field names; other items are left out. */
  texts: listField(kinds.text),
  numbers: listField(kinds.number),
  integers: listField(kinds.integer),

  /**
   * A nested object that is always present. If the upstream has no such object, its fields are
   * null.
   */
  record<Of extends Fields>(from: From, description: string, fields: Of): Field<ObjectOf<Of>, MissingOf<Of>> {
    const value = valueAt(from)
    const nested = record(fields, description)
    return { schema: nested.schema, read: (source) => nested.read(value(source)) }
  },

  /** A nested object; null if the upstream has no such object. */
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
   * The objects of a list. Items that are not objects are left out, and so are objects without a
   * required field.
   */
  records: <Of extends Fields>(from: From, description: string, fields: Of) =>
    listOrNone(from, recordsAt(from, description, fields)),

  /** A field with its own schema and reader. */
  computed: <Schema extends TSchema>(schema: Schema, read: (source: Source) => Static<Schema>): Field<Schema> => ({
    schema,
    read,
  }),
}

/**
 * Required fields: if the upstream's answer lacks the field, the reader of the record returns
 * undefined.
 */
export const required = {
  text: requiredField(kinds.text),
  date: requiredField(kinds.date),
  number: requiredField(kinds.number),
  amount: requiredField(kinds.amount),
  integer: requiredField(kinds.integer),
  flag: requiredField(kinds.flag),

  /** A field that the OpenAPI document calls nullable although no record has null. */
  notNull: <Schema extends TSchema>({ schema, read }: Field<Schema>): Field<Schema, undefined> => ({
    schema,
    read: (source) => read(source) ?? undefined,
  }),

  /** As `field.texts`, but missing if there is no list. */
  texts(from: From, description: string): Field<TArray<TString>, undefined> {
    const value = valueAt(from)
    const { schema, read } = field.texts(from, description)
    return { schema, read: (source) => (Array.isArray(value(source)) ? read(source) : undefined) }
  },

  /** As `field.records`, but missing if there is no list, or if no item can be read. */
  records<Of extends Fields>(from: From, description: string, fields: Of) {
    return listOf(from, recordsAt(from, description, fields))
  },

  /**
   * A record for each item of a list. An item that is not an object counts as an object without
   * members. Missing if there is no list, or if no item can be read.
   */
  recordOfEach<Of extends Fields>(from: From, description: string, fields: Of) {
    const { schema, read } = record(fields)
    const value = valueAt(from)
    const readEach = (source: Source) => items(value(source)).flatMap((item) => read(item) ?? [])
    const list = { schema: Type.Array(schema, { description }), read: readEach } as Field<TArray<ObjectOf<Of>>>
    return listOf(from, list)
  },

  /** As `field.computed`, but missing if the reader returns undefined. */
  computed: <Schema extends TSchema>(
    schema: Schema,
    read: (source: Source) => Static<Schema> | undefined,
  ): Field<Schema, undefined> => ({ schema, read }),
}

function recordsAt<Of extends Fields>(from: From, description: string, fields: Of): Field<TArray<ObjectOf<Of>>> {
  const value = valueAt(from)
  const { schema, read } = record(fields)
  const readAll = (source: Source) => objects(value(source)).flatMap((item) => read(item) ?? [])
  return { schema: Type.Array(schema, { description }), read: readAll } as Field<TArray<ObjectOf<Of>>>
}

/**
 * A list that may be absent. It counts as missing if what is there cannot be read, or if nothing of
 * its items can.
 */
function listOrNone<Schema extends TArray>(from: From, list: Field<Schema>): Field<Schema, undefined> {
  const value = valueAt(from)
  const read = (source: Source) => {
    const given = value(source) ?? []
    const found = list.read(source)
    const isRead = Array.isArray(given) && (given.length === 0 || items(found).length > 0)
    return isRead && (isFilled(found) || !isFilled(given)) ? found : undefined
  }
  return { schema: list.schema, read }
}

/**
 * A list that counts as missing if its items have changed their form. Without this check callers
 * would get an empty list, or items without values, and the gateway would store the answer.
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

/** Whether a value contains anything besides undefined, null, blank texts and empty lists. */
function isFilled(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(isFilled)
  if (isObject(value)) return Object.values(value).some(isFilled)
  return (value ?? null) !== null && !(typeof value === 'string' && value.trim() === '')
}

/** The raw value of a field. Only own members are read, so `constructor` leads to nothing. */
function valueAt(from: From): (source: Source) => unknown {
  if (typeof from === 'function') return from
  const [name = '', ...deeper] = from.split('.')
  if (deeper.length === 0) return (source) => (Object.hasOwn(source, name) ? source[name] : undefined)
  const inner = valueAt(deeper.join('.'))
  return (source) => (Object.hasOwn(source, name) ? inner(members(source[name])) : undefined)
}
