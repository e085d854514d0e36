import type { JsonSchema } from '../openapi/schemas.ts'
import { kindsOf } from './client-api.ts'

export interface TypeOptions {
  /** Indentation of the line on which the type begins. */
  indent?: string
  /** Whether members get their descriptions as comments. */
  hasComments?: boolean
  /** Objects that are nested deeper are written as `object`. */
  depthMax?: number
}

/** A JSON Schema as a TypeScript type. */
export function typescriptType(schema: JsonSchema, options: TypeOptions = {}): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ') || 'never'
  if (Array.isArray(schema.anyOf)) {
    return [...new Set(schema.anyOf.map((branch: JsonSchema) => typescriptType(branch, options)))].join(' | ')
  }
  const kinds = kindsOf(schema).map((kind) => kindType(kind, schema, options))
  return kinds.length === 0 ? 'unknown' : [...new Set(kinds)].join(' | ')
}

function kindType(kind: string, schema: JsonSchema, options: TypeOptions): string {
  switch (kind) {
    case 'integer':
    case 'number':
      return 'number'
    case 'array': {
      const item = (schema.items ?? {}) as JsonSchema
      const type = typescriptType(item, options)
      return isUnion(item) ? `(${type})[]` : `${type}[]`
    }
    case 'object':
      return objectType(schema, options)
    default:
      return kind
  }
}

function isUnion(schema: JsonSchema): boolean {
  const branches = (schema.enum ?? schema.anyOf ?? kindsOf(schema)) as unknown[]
  return schema.const === undefined && branches.length > 1
}

function objectType(schema: JsonSchema, options: TypeOptions): string {
  const { indent = '', hasComments = true, depthMax = Number.POSITIVE_INFINITY } = options
  if (depthMax === 0) return 'object'
  const inner = { ...options, depthMax: depthMax - 1 }
  const properties = schema.properties as Record<string, JsonSchema> | undefined
  if (!properties || Object.keys(properties).length === 0) {
    const { additionalProperties } = schema
    const isTyped = typeof additionalProperties === 'object'
    return `Record<string, ${isTyped ? typescriptType(additionalProperties as JsonSchema, inner) : 'unknown'}>`
  }
  const required = new Set((schema.required as string[] | undefined) ?? [])
  const deeper = { ...inner, indent: `${indent}  ` }
  const lines = Object.entries(properties).flatMap(([name, member]) => [
    ...(hasComments ? comment(member.description, deeper.indent) : []),
    `${deeper.indent}${memberName(name)}${required.has(name) ? '' : '?'}: ${typescriptType(member, deeper)}`,
  ])
  return `{\n${lines.join('\n')}\n${indent}}`
}

/** A name as a member of an object type or literal. */
export const memberName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))

/** A description as a one-line comment; no line if there is no description. */
export function comment(text: unknown, indent: string): string[] {
  if (typeof text !== 'string' || text === '') return []
  return [`${indent}/** ${text.replaceAll('*/', '*\\/').replace(/\s+/g, ' ')} */`]
}
