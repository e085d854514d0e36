import type { JsonSchema } from '../openapi/schemas.ts'
import { kindsOf } from './client-api.ts'

/** A JSON Schema as a TypeScript type; members carry their descriptions. `indent` is that of the line it begins on. */
export function typescriptType(schema: JsonSchema, indent = ''): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (Array.isArray(schema.anyOf)) {
    return [...new Set(schema.anyOf.map((branch: JsonSchema) => typescriptType(branch, indent)))].join(' | ')
  }
  const kinds = kindsOf(schema).map((kind) => kindType(kind, schema, indent))
  return kinds.length === 0 ? 'unknown' : [...new Set(kinds)].join(' | ')
}

function kindType(kind: string, schema: JsonSchema, indent: string): string {
  switch (kind) {
    case 'integer':
    case 'number':
      return 'number'
    case 'array': {
      const item = (schema.items ?? {}) as JsonSchema
      const type = typescriptType(item, indent)
      return isUnion(item) ? `(${type})[]` : `${type}[]`
    }
    case 'object':
      return objectType(schema, indent)
    default:
      return kind
  }
}

function isUnion(schema: JsonSchema): boolean {
  const branches = (schema.enum ?? schema.anyOf ?? kindsOf(schema)) as unknown[]
  return schema.const === undefined && branches.length > 1
}

function objectType(schema: JsonSchema, indent: string): string {
  const properties = schema.properties as Record<string, JsonSchema> | undefined
  if (!properties) {
    const { additionalProperties } = schema
    const value =
      typeof additionalProperties === 'object' ? typescriptType(additionalProperties as JsonSchema, indent) : 'unknown'
    return `Record<string, ${value}>`
  }
  const required = new Set((schema.required as string[] | undefined) ?? [])
  const inner = `${indent}  `
  const lines = Object.entries(properties).flatMap(([name, member]) => [
    ...comment(member.description, inner),
    `${inner}${memberName(name)}${required.has(name) ? '' : '?'}: ${typescriptType(member, inner)}`,
  ])
  return lines.length === 0 ? 'Record<string, never>' : `{\n${lines.join('\n')}\n${indent}}`
}

/** A name as a member of an object type or literal. */
export const memberName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))

/** A description as a comment of one line; none without one. */
export function comment(text: unknown, indent: string): string[] {
  if (typeof text !== 'string' || text === '') return []
  return [`${indent}/** ${text.replaceAll('*/', '*\\/').replace(/\s+/g, ' ')} */`]
}
