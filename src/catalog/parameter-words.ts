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

/** Patterns that a few words say as exactly. */
const PATTERN_WORDS: Record<string, string> = {
  '^[A-Za-z]{2}$': '2 letters',
  '^[A-Za-z]{3}$': '3 letters',
  '^[A-Za-z]{2,3}$': '2 or 3 letters',
  '^\\d{8}$': '8 digits: YYYYMMDD',
  '^\\d{8}(-\\d{8})?$': 'YYYYMMDD or YYYYMMDD-YYYYMMDD',
  '^\\d{4}-\\d{2}-\\d{2}$': 'date: YYYY-MM-DD',
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}$': 'date: YYYY-MM-DD',
  '^[0-9]{1,10}$': '1–10 digits',
}

/** Type, bounds and default of a parameter for people: `integer, 1–10. Default: 5`. */
export function parameterWords(schema: ParameterSchema): string {
  const words = valueWords(schema)
  return schema.default === undefined ? words : `${words}. Default: ${schema.default}`
}

function valueWords(schema: ParameterSchema): string {
  const options = schema.enum ?? schema.anyOf?.map((option) => option.const)
  if (options) return `one of ${options.join(', ')}`
  const { minimum, maximum, minLength = 0, maxLength, pattern } = schema
  if (schema.type === 'number' || schema.type === 'integer') {
    if (minimum === undefined || maximum === undefined) return schema.type
    return `${schema.type}, ${minimum < 0 ? `${minimum} to ${maximum}` : `${minimum}–${maximum}`}`
  }
  const known = pattern === undefined ? undefined : PATTERN_WORDS[pattern]
  if (known !== undefined) return known
  if (maxLength === undefined) return schema.type ?? 'string'
  return minLength > 1 ? `string, ${minLength}–${maxLength} characters` : `string, up to ${maxLength} characters`
}
