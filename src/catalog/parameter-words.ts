import type { ParameterSchema } from './catalog.ts'

/** The JSON type of a parameter as the catalog lists it. */
export function typeWord({ type, anyOf, enum: values }: ParameterSchema): string {
  // The body of a request may be of several types; no other parameter is without a type unless it
  // has a few values.
  if (Array.isArray(type)) return type.filter((name) => name !== 'null').join(' or ')
  return type ?? ((values ?? anyOf?.every((option) => option.const !== undefined)) ? 'string' : 'any')
}

/** What a parameter must be, in words. */
export function expectation(schema: ParameterSchema, isGiven: boolean): string {
  return `${isGiven ? 'it must be' : 'it is required and must be'} ${mustBe(schema)}`
}

function mustBe(schema: ParameterSchema): string {
  if (schema.items) return `a list, each item ${mustBe(schema.items)}`
  const options = optionsOf(schema)
  const type = typeWord(schema)
  const parts = [options ? `one of ${options.join(', ')}` : (KINDS[type] ?? `of type ${type}`)]
  const { minimum, maximum } = schema
  if (minimum !== undefined && maximum !== undefined) parts.push(`from ${minimum} to ${maximum}`)
  else if (minimum !== undefined) parts.push(`of at least ${minimum}`)
  else if (maximum !== undefined) parts.push(`of at most ${maximum}`)
  const { minLength = 0, maxLength, pattern } = schema
  const words = wordsOfPattern(schema)
  if (words !== undefined) return `${parts.join(' ')} (${words})`
  if (maxLength !== undefined)
    parts.push(`of ${minLength === maxLength ? maxLength : `${minLength} to ${maxLength}`} characters`)
  if (pattern !== undefined) parts.push(`matching ${pattern}`)
  return parts.join(' ')
}

const KINDS: Record<string, string> = {
  integer: 'a whole number',
  number: 'a number',
  string: 'a text',
  boolean: 'true or false',
  object: 'a JSON object',
  array: 'a list',
  any: 'a JSON value',
}

/** Other names of a parameter: `Also taken as lon or lng`; empty if it has none. */
export function aliasWords(aliases: readonly string[]): string {
  return aliases.length === 0 ? '' : `Also taken as ${aliases.join(' or ')}`
}

/** The values that a parameter may have, when these are few. */
export function optionsOf({ enum: values, anyOf }: ParameterSchema): unknown[] | undefined {
  if (values) return values
  const constants = anyOf?.map((option) => option.const)
  return constants?.every((value) => value !== undefined) ? constants : undefined
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

function wordsOfPattern({ pattern }: ParameterSchema): string | undefined {
  return pattern === undefined ? undefined : PATTERN_WORDS[pattern]
}

/** Type, bounds and default of a parameter for people: `integer, 1–10. Default: 5`. */
export function parameterWords(schema: ParameterSchema): string {
  const words = valueWords(schema)
  return schema.default === undefined ? words : `${words}. Default: ${schema.default}`
}

function valueWords(schema: ParameterSchema): string {
  const options = optionsOf(schema)
  if (options) return `one of ${options.join(', ')}`
  const { minimum, maximum, minLength = 0, maxLength } = schema
  if (schema.type === 'number' || schema.type === 'integer') {
    if (minimum === undefined || maximum === undefined) return schema.type
    return `${schema.type}, ${minimum < 0 ? `${minimum} to ${maximum}` : `${minimum}–${maximum}`}`
  }
  const known = wordsOfPattern(schema)
  if (known !== undefined) return known
  if (schema.items) return `list of: ${valueWords(schema.items)}`
  if (maxLength === undefined) return typeWord(schema)
  return minLength > 1 ? `string, ${minLength}–${maxLength} characters` : `string, up to ${maxLength} characters`
}
