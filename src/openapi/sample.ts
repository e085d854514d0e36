import type { JsonSchema, NamedSchemas } from './schemas.ts'

/** Example texts by the name of the member, for schemas that do not describe the text. */
const BY_NAME: Record<string, string> = {
  password: 'correct horse battery staple',
  currentPassword: 'correct horse battery staple',
  newPassword: 'a longer horse, a better staple',
  token: 'eyJhbGciOiJIUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiI5ZjFjM2M1MiJ9.c2lnbmF0dXJl',
  label: 'My laptop',
  name: 'Weather team',
}

const BY_FORMAT: Record<string, string> = {
  email: 'ada@example.com',
  uuid: '9f1c3c52-7f3e-4f8e-9d43-0d3f0f7f9a11',
  'date-time': '2026-11-21T12:00:00.000Z',
  date: '2026-11-21',
  uri: 'https://example.com',
}

interface SampleOptions {
  /** Name of the member for which the value is made. */
  name?: string
  /**
   * Whether the value is for a request. Optional ids and times are then left out, because a made-up
   * id names nothing.
   */
  isRequest?: boolean
}

/** A realistic value that fits a schema of the document. */
export function sampleOf(schema: JsonSchema, named: NamedSchemas, options: SampleOptions = {}): unknown {
  if (typeof schema.$ref === 'string') {
    return sampleOf(named.get(schema.$ref.slice('#/components/schemas/'.length)) ?? {}, named, options)
  }
  const [listed] = Array.isArray(schema.examples) ? schema.examples : []
  const given = listed ?? schema.default ?? schema.const ?? (schema.enum as unknown[] | undefined)?.[0]
  if (given !== undefined) return given
  const [branch] = (schema.anyOf ?? schema.oneOf ?? []) as JsonSchema[]
  if (branch) return sampleOf(branch, named, options)
  switch ([schema.type].flat()[0]) {
    case 'object':
      return sampleObject(schema, named, options)
    case 'array':
      return [sampleOf(schema.items as JsonSchema, named, options)]
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    case 'string':
      return BY_FORMAT[String(schema.format)] ?? BY_NAME[options.name ?? ''] ?? options.name ?? 'text'
    default:
      return null
  }
}

function sampleObject(schema: JsonSchema, named: NamedSchemas, { isRequest = false }: SampleOptions): unknown {
  const required = new Set((schema.required as string[] | undefined) ?? [])
  const entries = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
    .filter(([name, { format }]) => required.has(name) || !isRequest || !(format === 'uuid' || format === 'date-time'))
    .map(([name, member]) => [name, sampleOf(member, named, { name, isRequest })])
  return Object.fromEntries(entries)
}
