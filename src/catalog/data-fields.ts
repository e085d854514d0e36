import type { ParameterSchema } from './api-endpoint.ts'
import { boundWords } from './parameter-words.ts'

/** One member of a body or of an answer's data, for the table of a page. */
export interface DataField {
  name: string
  /** Nesting depth: 0 for members of `data` itself. */
  depth: number
  /** The type in words: `number or null`, `list of objects`. */
  type: string
  /** Bounds of the value in words: `1–50 items`; empty if there are none. */
  bounds: string
  /** Whether the object around it must have it. */
  isRequired: boolean
  /** The default of an omitted member, as text; empty without a default. */
  fallback: string
  meaning: string
  /**
   * The value in the recorded example, as JSON; empty for objects, lists and members that the
   * example lacks.
   */
  example: string
}

/** The part of a JSON Schema that describes data. */
interface DataSchema extends Omit<ParameterSchema, 'type' | 'items' | 'anyOf'> {
  type?: string | string[]
  required?: string[]
  properties?: Record<string, DataSchema>
  patternProperties?: Record<string, DataSchema>
  additionalProperties?: DataSchema | boolean
  items?: DataSchema
  anyOf?: DataSchema[]
  const?: unknown
}

/** Longest example value shown, characters. */
const EXAMPLE_LENGTH_MAX = 60

/**
 * Every member of an endpoint's data with type, description and recorded value, in the order of the
 * schema.
 */
export function dataFields(schema: object, example: unknown): DataField[] {
  return membersOf(schema as DataSchema, example, 0)
}

function membersOf(schema: DataSchema, example: unknown, depth: number): DataField[] {
  const { inner } = withoutNull(schema)
  if (inner.items) return membersOf(inner.items, Array.isArray(example) ? example[0] : undefined, depth)
  const named = Object.entries(inner.properties ?? {}).flatMap(([name, member]) =>
    fieldsOf(name, member, {
      example: memberOf(example, name),
      depth,
      isRequired: inner.required?.includes(name) ?? false,
    }),
  )
  const record = recordOf(inner)
  if (!record) return named
  const [name, value] = Object.entries(Object(example) as Record<string, unknown>)[0] ?? ['name', undefined]
  return [...named, ...fieldsOf(`${name}, …`, record, { example: value, depth, isRequired: false })]
}

function fieldsOf(
  name: string,
  schema: DataSchema,
  { example, depth, isRequired }: { example: unknown; depth: number; isRequired: boolean },
): DataField[] {
  const { inner, isNullable, description } = withoutNull(schema)
  const field = {
    name,
    depth,
    type: `${typeWords(inner)}${isNullable ? ' or null' : ''}`,
    bounds: boundWords(inner as ParameterSchema),
    isRequired,
    fallback: inner.default === undefined ? '' : String(inner.default),
    meaning: description ?? '',
    example: exampleWords(example),
  }
  return [field, ...membersOf(inner, example, depth + 1)]
}

/** The schema without the alternative null. The description may stand at either level. */
function withoutNull(schema: DataSchema): { inner: DataSchema; isNullable: boolean; description: string | undefined } {
  if (Array.isArray(schema.type)) {
    const [type, ...others] = schema.type.filter((name) => name !== 'null')
    const isNullable = schema.type.includes('null')
    if (type !== undefined && others.length === 0) {
      return { inner: { ...schema, type }, isNullable, description: schema.description }
    }
  }
  const options = schema.anyOf ?? []
  const [only, ...others] = options.filter(({ type }) => type !== 'null')
  if (!only || others.length > 0) return { inner: schema, isNullable: false, description: schema.description }
  return { inner: only, isNullable: options.length > 1, description: schema.description ?? only.description }
}

function recordOf({ patternProperties, additionalProperties }: DataSchema): DataSchema | undefined {
  if (patternProperties) return Object.values(patternProperties)[0]
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}

function typeWords(schema: DataSchema): string {
  if (schema.enum) return `one of ${schema.enum.join(', ')}`
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.items) {
    const { inner } = withoutNull(schema.items)
    if (inner.properties || inner.patternProperties) return 'list of objects'
    // Only type names have a plural.
    return typeof inner.type === 'string' && !inner.enum ? `list of ${inner.type}s` : `list of: ${typeWords(inner)}`
  }
  return typeof schema.type === 'string' ? schema.type : 'any'
}

function memberOf(example: unknown, name: string): unknown {
  return typeof example === 'object' && example !== null ? (example as Record<string, unknown>)[name] : undefined
}

function exampleWords(example: unknown): string {
  if (example === undefined || example === null) return ''
  if (Array.isArray(example) && example.length > 0 && example.every((item) => typeof item !== 'object')) {
    return shortened(JSON.stringify(example))
  }
  return typeof example === 'object' ? '' : shortened(JSON.stringify(example))
}

const shortened = (text: string): string =>
  text.length <= EXAMPLE_LENGTH_MAX ? text : `${text.slice(0, EXAMPLE_LENGTH_MAX)}…`
