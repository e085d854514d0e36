import type { ParameterSchema } from './catalog.ts'

/** What a parameter must be, in words. */
export function expectation(schema: ParameterSchema, isGiven: boolean): string {
  const options = schema.enum ?? schema.anyOf?.map((option) => option.const)
  const kind = schema.type === 'integer' ? 'a whole number' : schema.type === 'number' ? 'a number' : 'a text'
  const parts = [options ? `one of ${options.join(', ')}` : kind]
  const { minimum, maximum } = schema
  if (minimum !== undefined && maximum !== undefined) parts.push(`from ${minimum} to ${maximum}`)
  else if (minimum !== undefined) parts.push(`of at least ${minimum}`)
  else if (maximum !== undefined) parts.push(`of at most ${maximum}`)
  if (schema.maxLength !== undefined) parts.push(`of ${schema.minLength ?? 0} to ${schema.maxLength} characters`)
  if (schema.pattern !== undefined) parts.push(`matching ${schema.pattern}`)
  return `${isGiven ? 'it must be' : 'it is required and must be'} ${parts.join(' ')}`
}

/** What a value must be, and its default: `a whole number from 1 to 10; default: 5`. */
export function parameterWords(schema: ParameterSchema): string {
  const must = expectation(schema, true).replace('it must be ', '')
  return schema.default === undefined ? must : `${must}; default: ${schema.default}`
}
