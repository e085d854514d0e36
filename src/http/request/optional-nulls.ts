import { isObject } from '../../catalog/json.ts'

/** The part of a JSON schema that lists the members of an object. */
interface Shape {
  type?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly unknown[]
  properties?: Record<string, unknown>
  required?: readonly string[]
  items?: unknown
}

/**
 * Removes optional members of a body that are null, because clients with typed classes send null
 * for members that their user left out. If the schema allows null, the null stays, because it has a
 * meaning. The body is changed in place, because a copy would lose the spelling of its numbers.
 */
export function removeOptionalNulls(schema: unknown, body: unknown): void {
  if (!isObject(schema)) return
  const { properties = {}, required = [], items }: Shape = schema
  if (Array.isArray(body)) for (const item of body) removeOptionalNulls(items, item)
  if (!isObject(body)) return
  for (const [name, member] of Object.entries(properties)) {
    if (!Object.hasOwn(body, name)) continue
    if (body[name] === null && !required.includes(name) && !takesNull(member)) delete body[name]
    else removeOptionalNulls(member, body[name])
  }
}

function takesNull(schema: unknown): boolean {
  if (!isObject(schema)) return true
  const { type, enum: values, anyOf }: Shape = schema
  if (values) return values.includes(null)
  if (anyOf) return anyOf.some(takesNull)
  return type === undefined || type === 'null' || (Array.isArray(type) && type.includes('null'))
}
