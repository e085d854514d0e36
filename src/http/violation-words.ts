/** What a request's schema found wrong, as Ajv says it. */
export interface Violation {
  instancePath?: string
  keyword?: string
  message?: string
  params?: Record<string, unknown>
}

/** What must hold of the value, so that the caller can mend it without the schema. Of the request only names are repeated. */
export function violationWords({ keyword = '', message = 'is not valid', params = {} }: Violation): string {
  const { allowedValues, allowedValue, limit, pattern, format, additionalProperty } = params
  switch (keyword) {
    case 'enum':
      return `must be one of ${[allowedValues].flat().join(', ')}`
    case 'const':
      return `must be ${allowedValue}`
    case 'pattern':
      return patternWords(String(pattern)) ?? message
    case 'format':
      return FORMATS[String(format)] ?? message
    case 'minLength':
      return `must have at least ${counted(limit, 'character')}`
    case 'maxLength':
      return `must have at most ${counted(limit, 'character')}`
    case 'minItems':
    case 'minProperties':
      return `must have at least ${counted(limit, 'member')}`
    case 'maxItems':
    case 'maxProperties':
      return `must have at most ${counted(limit, 'member')}`
    case 'additionalProperties':
      return isName(additionalProperty) ? `must have no member ${additionalProperty}` : 'has a member that is not known'
    default:
      return message
  }
}

/** Whether a name of the caller's may stand in a sentence of ours. */
export function isName(name: unknown): name is string {
  return typeof name === 'string' && /^[\w.]{1,64}$/.test(name)
}

function counted(count: unknown, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
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
  '^2\\d{3}-\\d{2}-\\d{2}$': 'must be a day as YYYY-MM-DD',
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
