import type { Schema } from './schema-keywords.ts'
import { texts } from './schemas.ts'

/**
 * The schema of `data`. Data are an object, so an answer of another type becomes a member of an
 * object.
 */
export function dataSchema(
  schema: Schema | undefined,
): Schema & { type: 'object'; properties: Record<string, Schema> } {
  if (schema === undefined) return { type: 'object', properties: {} }
  const form = flattened(schema)
  if (form.type === 'array') return { type: 'object', properties: { items: form }, required: ['items'] }
  if (form.type === 'object' || form.type === undefined) {
    return { ...form, type: 'object', properties: (form.properties ?? {}) as Record<string, Schema> }
  }
  return { type: 'object', properties: { value: form }, required: ['value'] }
}

/**
 * Turns a choice between objects into one object. A member is required only if all options require
 * it.
 */
function flattened(schema: Schema): Schema {
  const { anyOf, type, ...rest } = schema
  const kind = Array.isArray(type) ? type.find((name) => name !== 'null') : type
  if (!Array.isArray(anyOf)) return kind === undefined ? rest : { ...rest, type: kind }
  const options = (anyOf as Schema[]).map(flattened).filter((option) => option.type !== 'null')
  if (options.length === 0 || options.some((option) => option.type !== 'object')) {
    return options.every((option) => option.type === options[0]?.type) ? { ...rest, ...options[0] } : { ...rest }
  }
  const forms = new Map<string, Map<string, Schema>>()
  for (const option of options) {
    for (const [name, inner] of Object.entries((option.properties ?? {}) as Record<string, Schema>)) {
      forms.set(name, (forms.get(name) ?? new Map()).set(JSON.stringify(inner), inner))
    }
  }
  const properties: Record<string, Schema> = {}
  for (const [name, different] of forms) {
    const [only = {}, ...others] = different.values()
    properties[name] = others.length === 0 ? only : { anyOf: [only, ...others] }
  }
  const required = texts(options[0]?.required).filter((name) =>
    options.every((option) => texts(option.required).includes(name)),
  )
  return { ...rest, type: 'object', properties, ...(required.length === 0 ? {} : { required }) }
}
