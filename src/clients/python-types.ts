import { pascal } from '../catalog/type-name.ts'
import type { JsonSchema } from '../openapi/schemas.ts'
import { kindsOf } from './client-api.ts'

/** A typed dictionary of Python: its name and its members, with their types. */
export interface PythonRecord {
  name: string
  members: { name: string; type: string; description: string | undefined }[]
  /** Whether every member is always present. */
  isTotal: boolean
}

/**
 * A JSON Schema as a Python type. Objects with named members are added to `records` under `name`.
 */
export function pythonType(schema: JsonSchema, name: string, records: PythonRecord[]): string {
  if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`
  if (Array.isArray(schema.enum))
    return schema.enum.length === 0 ? 'Any' : `Literal[${schema.enum.map(literal).join(', ')}]`
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
  { name, records }: { name: string; records: PythonRecord[] },
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

function objectType(schema: JsonSchema, wanted: string, records: PythonRecord[]): string {
  // Two members can have the same type name if they differ only in characters that type names
  // cannot have.
  let name = wanted
  for (let count = 2; records.some((record) => record.name === name); count += 1) name = `${wanted}_${count}`
  const properties = schema.properties as Record<string, JsonSchema> | undefined
  if (!properties) {
    const { additionalProperties } = schema
    if (typeof additionalProperties !== 'object') return 'Dict[str, Any]'
    return `Dict[str, ${pythonType(additionalProperties as JsonSchema, `${name}Value`, records)}]`
  }
  const members = Object.entries(properties).map(([member, inner]) => ({
    name: member,
    type: pythonType(inner, `${name}${pascal([member])}`, records),
    description: inner.description as string | undefined,
  }))
  const required = new Set((schema.required as string[] | undefined) ?? [])
  records.push({ name, members, isTotal: Object.keys(properties).every((member) => required.has(member)) })
  return name
}

/** Writes a JSON value as a Python literal. */
export function literal(value: unknown): string {
  if (value === null) return 'None'
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value)
}
