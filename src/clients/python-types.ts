import { pascal } from '../catalog/type-name.ts'
import type { JsonSchema } from '../openapi/schemas.ts'
import { kindsOf, type TypeNames } from './client-api.ts'

/** A typed dictionary of Python: its name and its members, with their types. */
export interface PythonRecord {
  name: string
  members: { name: string; type: string; description: string | undefined }[]
  /** Whether every member is always present. */
  isTotal: boolean
}

/** The typed dictionaries of a client so far, and the names that are taken. */
export interface PythonRecords {
  names: TypeNames
  list: PythonRecord[]
}

/**
 * A JSON Schema as a Python type. Objects with named members are added to `records` under `name`,
 * or under a similar name that is free.
 */
export function pythonType(schema: JsonSchema, name: string, records: PythonRecords): string {
  const values = schema.const === undefined ? schema.enum : [schema.const]
  if (Array.isArray(values) && areLiterals(values)) return `Literal[${values.map(literal).join(', ')}]`
  if (Array.isArray(schema.anyOf)) {
    return `Union[${schema.anyOf.map((branch: JsonSchema, index) => pythonType(branch, `${name}${index + 1}`, records)).join(', ')}]`
  }
  const kinds = kindsOf(schema)
  const types = kinds.filter((kind) => kind !== 'null').map((kind) => kindType(kind, schema, { name, records }))
  const [only = 'Any', ...others] = types
  const type = others.length > 0 ? `Union[${types.join(', ')}]` : only
  return kinds.includes('null') ? `Optional[${type}]` : type
}

function kindType(
  kind: string,
  schema: JsonSchema,
  { name, records }: { name: string; records: PythonRecords },
): string {
  switch (kind) {
    case 'string':
      return 'str'
    case 'integer':
      return 'int'
    case 'number':
      return 'float'
    case 'boolean':
      return 'bool'
    case 'array':
      return `List[${pythonType((schema.items ?? {}) as JsonSchema, `${name}Item`, records)}]`
    case 'object':
      return objectType(schema, name, records)
    default:
      return 'Any'
  }
}

function objectType(schema: JsonSchema, wanted: string, records: PythonRecords): string {
  const { properties, additionalProperties } = schema
  if (properties === undefined || Object.keys(Object(properties)).length === 0) {
    if (typeof additionalProperties !== 'object') return 'Dict[str, Any]'
    return `Dict[str, ${pythonType(additionalProperties as JsonSchema, `${wanted}Value`, records)}]`
  }
  const name = records.names.take(wanted)
  addRecord(schema, name, records)
  return name
}

/** Adds the typed dictionary of an object, and the typed dictionaries in it. */
export function addRecord({ properties, required }: JsonSchema, name: string, records: PythonRecords): void {
  const members = Object.entries(Object(properties) as Record<string, JsonSchema>).map(([member, inner]) => ({
    name: member,
    type: pythonType(inner, `${name}${pascal([member])}`, records),
    description: inner.description as string | undefined,
  }))
  const always = new Set((required as string[] | undefined) ?? [])
  records.list.push({ name, members, isTotal: members.every((member) => always.has(member.name)) })
}

/** Whether there are values, and all of them can stand in a `Literal`. */
function areLiterals(values: unknown[]): boolean {
  const isLiteral = (value: unknown) =>
    value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)
  return values.length > 0 && values.every(isLiteral)
}

/** Writes a text, a whole number, a boolean or null as a Python literal. */
function literal(value: unknown): string {
  if (value === null) return 'None'
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value)
}
