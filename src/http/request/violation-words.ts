import { nearestName } from '../../catalog/nearest-name.ts'

/** What a request's schema found wrong, as Ajv says it. */
export interface Violation {
  instancePath?: string
  keyword?: string
  message?: string
  params?: Record<string, unknown>
  /** What was checked, and by what: with Ajv's option `verbose` alone. */
  data?: unknown
  parentSchema?: { properties?: Record<string, unknown>; description?: string }
}

/**
 * What must hold of the value, so that the caller can mend it without the schema. Of the request
 * only names are repeated.
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

/** The member that is wrong, as a path with dots; undefined if no member can be named. */
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

/** Nobody who sends a request can read the pattern of its schema; the description is for people. */
function describedWords({ message = 'is not valid', parentSchema }: Violation): string {
  return parentSchema?.description === undefined ? message : `must be as described: ${parentSchema.description}`
}

/** What null means for a list that may not be empty, if its description ends with that. */
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
  // Of a call, whose parameters are often put beside the member that they belong in.
  const under = known.includes('parameters') ? '; those of the endpoint stand under parameters' : ''
  return `${what}; the members are ${known.join(', ')}${under}`
}

/** A member that is missing may be there under another name. */
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

/** Ends in a full stop, unless it asks. */
export function sentence(words: string): string {
  return words.endsWith('?') ? words : `${words}.`
}

/** Whether a name of the caller's may stand in a sentence of ours. */
export function isName(name: unknown): name is string {
  return typeof name === 'string' && /^[\w.]{1,64}$/.test(name)
}

function counted(count: unknown, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Names of a request that are compared with one of ours: a body can have very many. */
const COMPARED_MAX = 50

/** The types of JSON Schema, for whoever reads none. */
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
  uri: 'must be an absolute address',
  uuid: 'must be a UUID',
}

/** Of the patterns that request schemas have. */
const PATTERNS: Record<string, string> = {
  '\\S': 'must not be blank',
  '^[\\x21-\\x7e]+$': 'must be of ASCII characters without blanks',
  '^2\\d{3}-\\d{2}-\\d{2}$': 'must be a day as YYYY-MM-DD, from 2000 to 2999',
  '^([1-9]\\d?|100)$': 'must be a whole number from 1 to 100',
  '^[1-9]\\d{0,2}$': 'must be a whole number from 1 to 999',
}

/** Some of these words, separated by commas. */
const LIST = /^\^\(([\w|]+)\)\(,\(\1\)\)\*\$$/

function patternWords(pattern: string): string | undefined {
  const [, words] = LIST.exec(pattern) ?? []
  if (words !== undefined) return `must be one or more of ${words.split('|').join(', ')}, separated by commas`
  return PATTERNS[pattern]
}
