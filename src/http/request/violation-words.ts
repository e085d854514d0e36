import { nearestName } from '../../catalog/nearest-name.ts'

/** A violation of a request's schema, as Ajv reports it. */
export interface Violation {
  instancePath?: string
  keyword?: string
  message?: string
  params?: Record<string, unknown>
  /** The checked value and its schema; only with Ajv's option `verbose`. */
  data?: unknown
  parentSchema?: { properties?: Record<string, unknown>; description?: string }
}

/**
 * What the value must be, so that the caller can correct it without seeing the schema. It repeats
 * only names of the request, never values.
 */
export function violationWords(violation: Violation): string {
  const { keyword = '', message = 'is not valid', params = {} } = violation
  const { allowedValues, allowedValue, limit, pattern, format } = params
  switch (keyword) {
    case 'enum':
      return `must be one of ${[allowedValues].flat().join(', ')}`
    case 'const':
      return `must be ${allowedValue}`
    case 'type':
      return typeWords(violation)
    case 'minimum':
      return `must be at least ${limit}`
    case 'maximum':
      return `must be at most ${limit}`
    case 'pattern':
      return patternWords(String(pattern)) ?? describedWords(violation)
    case 'format':
      return FORMATS[String(format)] ?? describedWords(violation)
    case 'minLength':
      return `must have at least ${counted(limit, 'character')}`
    case 'maxLength':
      return `must have at most ${counted(limit, 'character')}`
    case 'minItems':
    case 'minProperties':
      return `must have at least ${counted(limit, 'member')}${nullWords(violation)}`
    case 'maxItems':
    case 'maxProperties':
      return `must have at most ${counted(limit, 'member')}`
    case 'additionalProperties':
      return unknownWords(violation)
    case 'required':
      return `is required${misspeltWords(violation)}`
    default:
      return message
  }
}

/** The path of the wrong member, with dots; undefined if no member can be named. */
export function violationPlace({ instancePath = '', keyword, params = {} }: Violation): string | undefined {
  const member = keyword === 'additionalProperties' ? params.additionalProperty : params.missingProperty
  const path = instancePath.slice(1).replaceAll('/', '.')
  const name = [path, isName(member) ? member : ''].filter((part) => part !== '').join('.')
  return isName(name) ? name : undefined
}

function typeWords(violation: Violation): string {
  const types = [violation.params?.type].flat().map(String)
  const known = types.includes('object') ? knownMembers(violation) : []
  return `must be ${types.map((type) => TYPES[type] ?? type).join(' or ')}${known.length === 0 ? '' : `; the members are ${known.join(', ')}`}`
}

/**
 * Callers cannot see the pattern of a schema, so the message shows the description, which is for
 * people.
 */
function describedWords({ message = 'is not valid', parentSchema }: Violation): string {
  return parentSchema?.description === undefined ? message : `must be as described: ${parentSchema.description}`
}

/** What null means for a list that must not be empty, if the end of its description says so. */
function nullWords({ parentSchema }: Violation): string {
  const [, meaning] = /; null: ([^;]+)$/.exec(parentSchema?.description ?? '') ?? []
  return meaning === undefined ? '' : `, or be null: ${meaning}`
}

function unknownWords(violation: Violation): string {
  const known = knownMembers(violation)
  const given = violation.params?.additionalProperty
  const meant = isName(given) ? nearestName(given, known) : undefined
  const what = isName(given) ? 'is not known' : 'has a member that is not known'
  if (meant !== undefined) return `${what}; did you mean ${meant}?`
  if (known.length === 0) return what
  // For a call in a batch or by the tool `call_api`: callers often put the endpoint's parameters
  // beside the member `parameters`.
  const under = known.includes('parameters') ? '; the parameters of the endpoint belong in the member parameters' : ''
  return `${what}; the members are ${known.join(', ')}${under}`
}

/** If a member is missing, it may be there under a misspelt name. */
function misspeltWords(violation: Violation): string {
  const { data, params = {} } = violation
  const { missingProperty: missing } = params
  if (typeof data !== 'object' || data === null || typeof missing !== 'string') return ''
  const known = new Set(knownMembers(violation))
  const unknown = Object.keys(data).filter((name) => isName(name) && !known.has(name))
  const misspelt = nearestName(missing, unknown.slice(0, COMPARED_MAX))
  return misspelt === undefined ? '' : `; ${misspelt} is not known`
}

function knownMembers({ parentSchema }: Violation): string[] {
  return Object.keys(parentSchema?.properties ?? {})
}

/** Ends the text with a full stop, unless it ends with a question mark. */
export function sentence(words: string): string {
  return words.endsWith('?') ? words : `${words}.`
}

/** Whether a name from the caller may be part of a sentence. */
export function isName(name: unknown): name is string {
  return typeof name === 'string' && /^[\w.]{1,64}$/.test(name)
}

function counted(count: unknown, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Names of a request that are compared with known names. A body can have very many names. */
const COMPARED_MAX = 50

/** Words for the types of JSON Schema. */
const TYPES: Record<string, string> = {
  object: 'a JSON object',
  array: 'a list',
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
}

const FORMATS: Record<string, string> = {
  email: 'must be an email address, such as name@example.com',
  'date-time': 'must be a time with its zone, such as 2030-01-31T12:00:00Z',
  uri: 'must be an absolute URL, such as https://example.com/path',
  uuid: 'must be a UUID',
}

/** Words for the patterns of request schemas. */
const PATTERNS: Record<string, string> = {
  '\\S': 'must not be blank',
  '^[\\x21-\\x7e]+$': 'must consist of visible ASCII characters, without spaces',
  '^2\\d{3}-\\d{2}-\\d{2}$': 'must be a day as YYYY-MM-DD, from 2000 to 2999',
  '^([1-9]\\d?|100)$': 'must be a whole number from 1 to 100',
  '^[1-9]\\d{0,2}$': 'must be a whole number from 1 to 999',
}

/** A pattern that allows a list of some words, separated by commas. */
const LIST = /^\^\(([\w|]+)\)\(,\(\1\)\)\*\$$/

function patternWords(pattern: string): string | undefined {
  const [, words] = LIST.exec(pattern) ?? []
  if (words !== undefined) return `must be one or more of ${words.split('|').join(', ')}, separated by commas`
  return PATTERNS[pattern]
}
