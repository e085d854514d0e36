import type { ParameterSchema } from './api-endpoint.ts'

/** The JSON type of a parameter as the catalog lists it. */
export function typeWord({ type, anyOf, enum: values }: ParameterSchema): string {
  // The body of a request may have several types. Any other parameter without a type has a list of
  // values.
  if (Array.isArray(type)) return type.filter((name) => name !== 'null').join(' or ')
  return type ?? ((values ?? anyOf?.every((option) => option.const !== undefined)) ? 'string' : 'any')
}

/** What a parameter must be, as the end of a sentence. */
export function expectation(schema: ParameterSchema, isGiven: boolean): string {
  return `${isGiven ? 'it must be' : 'it is required and must be'} ${mustBe(schema)}`
}

function mustBe(schema: ParameterSchema): string {
  if (schema.items) {
    const count = countWords(schema.minItems, schema.maxItems, 'item')
    return `a list${count && ` of ${count}`}, each item ${mustBe(schema.items)}`
  }
  const options = optionsOf(schema)
  const type = typeWord(schema)
  const parts = [options ? `one of ${options.join(', ')}` : (KINDS[type] ?? `of type ${type}`)]
  const bounds = boundsOf(schema, `from ${schema.minimum} to ${schema.maximum}`).join(' and ')
  parts.push(...(bounds === '' ? [] : [bounds.replace(/^(?=at|more|less)/, 'of ').replace(/^a multiple/, 'and $&')]))
  const { minLength = 0, maxLength, pattern } = schema
  const words = wordsOfPattern(schema)
  // A pattern with counts already gives the length of the text.
  if (words !== undefined && pattern?.includes('{')) return `${parts.join(' ')} (${words})`
  if (maxLength !== undefined)
    parts.push(`of ${minLength === maxLength ? maxLength : `${minLength} to ${maxLength}`} characters`)
  if (words !== undefined) parts.push(`(${words})`)
  else if (pattern !== undefined) parts.push(`matching ${pattern}`)
  return parts.join(' ')
}

const KINDS: Record<string, string> = {
  integer: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  object: 'a JSON object',
  array: 'a list',
  any: 'a JSON value',
}

/** Other names of a parameter: `Also accepted as lon or lng`; empty if it has none. */
export function aliasWords(aliases: readonly string[]): string {
  return aliases.length === 0 ? '' : `Also accepted as ${aliases.join(' or ')}`
}

/** The values that a parameter may have, if its schema lists them. */
export function optionsOf({ enum: values, anyOf }: ParameterSchema): unknown[] | undefined {
  if (values) return values
  const constants = anyOf?.map((option) => option.const)
  return constants?.every((value) => value !== undefined) ? constants : undefined
}

/** Patterns in words, because people do not read regular expressions. */
const PATTERN_WORDS: Record<string, string> = {
  '^[A-Za-z]{2}$': '2 letters',
  '^[A-Za-z]{3}$': '3 letters',
  '^[A-Za-z]{2,3}$': '2 or 3 letters',
  '^\\d{8}$': '8 digits: YYYYMMDD',
  '^\\d{8}(-\\d{8})?$': 'YYYYMMDD or YYYYMMDD-YYYYMMDD',
  '^\\d{4}-\\d{2}-\\d{2}$': 'date: YYYY-MM-DD',
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}$': 'date: YYYY-MM-DD',
  '^2\\d{3}-\\d{2}-\\d{2}$': 'date: YYYY-MM-DD',
  '^[0-9]{1,10}$': '1–10 digits',
  '^[A-Za-z0-9_-]+(\\[bot\\])?$': 'letters, digits, - and _; may end with [bot]',
  '^\\s*[A-Za-z]+(/[A-Za-z]+)?\\s*$': 'letters, with one / between breed and sub-breed',
  '^[^#<>\\[\\]|{}]+$': 'without # < > [ ] | { }',
  '^[^,]*$': 'without commas',
  '^[A-Za-z][A-Za-z0-9_+/-]*$': 'the name of a time zone: Area/City',
  '^([1-9]\\d?|100)$': '1–100',
  '^([1-9]\\d{0,2}|1000)$': '1–1000',
  '^[1-5](xx|\\d\\d)$': 'a status, such as 429 or 5xx',
  '^(day|api|key|status|mode|charged)(,(day|api|key|status|mode|charged))*$':
    'one or more of day, api, key, status, mode, charged, separated by commas',
  '^[A-Z_]{1,60}$': 'a code, such as RATE_LIMIT_EXCEEDED',
  '^[\\w.-]{1,128}$': 'letters, digits and . - _, up to 128',
  '^(session|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$': 'the id of a key, or the word session',
  '^call_[0-9a-f]{32}$': 'the id of a call: call_ and 32 characters',
  '^(\\d{1,16}_)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$': 'as the Link header of the last page has it',
  '^\\d{1,15}_[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$': 'as the Link header of the last page has it',
  '^[\\w-]+(~[\\w-]+)*$': 'as the Link header of the last page has it',
  '^[\\x21-\\x7e]+$': 'visible ASCII characters',
  '^raw$': 'raw',
  '^(upstream-500|timeout|rate-limited|invalid|slow-[0-9]{1,5})$':
    'upstream-500, timeout, rate-limited, invalid or slow-<ms>',
  '\\S': 'not blank',
}

/** The pattern of a schema in words; undefined if it has no pattern, or if the table lacks it. */
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
  const bounds = boundWords(schema)
  if (schema.items) return [`list of: ${valueWords(schema.items)}`, bounds].filter(Boolean).join('; ')
  if (bounds !== '' && bounds === wordsOfPattern(schema)) return bounds
  return [typeWord(schema), bounds].filter(Boolean).join(', ')
}

/** Bounds of a value besides its type, such as `1–50 items`; empty if there are none. */
export function boundWords(schema: ParameterSchema): string {
  const { format, pattern, minProperties = 0 } = schema
  const form = wordsOfPattern(schema)
  // A pattern with counts already gives the length of the text.
  if (form !== undefined && pattern?.includes('{')) return form
  const items = countWords(schema.minItems, schema.maxItems, 'item')
  const length = countWords(schema.minLength, schema.maxLength, 'character')
  return [
    format && (FORMAT_WORDS[format] ?? format),
    rangeWords(schema),
    items,
    // "1 character or more" says nothing, because every text that is given has a character.
    length === '1 character or more' ? '' : length.replace(/^1–/, 'up to '),
    form ?? (pattern === undefined ? '' : `matching ${pattern}`),
    minProperties > 0 ? countWords(minProperties, undefined, 'member') : '',
  ]
    .filter(Boolean)
    .join(', ')
}

const FORMAT_WORDS: Record<string, string> = {
  'date-time': 'date and time: YYYY-MM-DDThh:mm:ssZ',
  date: 'date: YYYY-MM-DD',
  email: 'an email address',
  uuid: 'a UUID',
}

function rangeWords(schema: ParameterSchema): string {
  const { minimum = 0, maximum } = schema
  return boundsOf(schema, minimum < 0 ? `${minimum} to ${maximum}` : `${minimum}–${maximum}`).join(', ')
}

/** The bounds of a number in words. `range` joins a minimum and a maximum. */
function boundsOf(
  { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }: ParameterSchema,
  range: string,
): string[] {
  const isRange = minimum !== undefined && maximum !== undefined
  return [
    ...(isRange ? [range] : []),
    ...(minimum === undefined || isRange ? [] : [`at least ${minimum}`]),
    ...(maximum === undefined || isRange ? [] : [`at most ${maximum}`]),
    ...(exclusiveMinimum === undefined ? [] : [`more than ${exclusiveMinimum}`]),
    ...(exclusiveMaximum === undefined ? [] : [`less than ${exclusiveMaximum}`]),
    ...(multipleOf === undefined ? [] : [`a multiple of ${multipleOf}`]),
  ]
}

function countWords(least: number | undefined, most: number | undefined, thing: string): string {
  if (most === undefined) return least ? `${least} ${thing}${least === 1 ? '' : 's'} or more` : ''
  const count = least === most ? `exactly ${most}` : least ? `${least}–${most}` : `up to ${most}`
  return `${count} ${thing}${most === 1 ? '' : 's'}`
}
