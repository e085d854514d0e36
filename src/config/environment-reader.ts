import { createHash } from 'node:crypto'

/** A setting that cannot be used; the message names the variable. */
export class ConfigError extends Error {}

export type Environment = Record<string, string | undefined>

/**
 * A secret, and the id by which tokens and records name it. In a list, the first secret is the
 * current secret.
 */
export interface Secret {
  id: string
  bytes: Buffer
}

/** Reads variables as types. Errors name the variable. An empty value counts as unset. */
export class EnvironmentReader {
  readonly #environment: Environment
  readonly #names = new Set<string>()

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** The names of all variables that were read. */
  get names(): string[] {
    return [...this.#names]
  }

  /** Whether nobody read a variable, because it is not a setting or is misspelt. */
  readonly isUnread = (name: string): boolean => !this.#names.has(name)

  /**
   * @throws ConfigError that names all missing variables if several are missing. If only one is
   *   missing, the later read names it.
   */
  requireAll(names: readonly string[]): void {
    const missing = names.filter((name) => !this.#get(name))
    if (missing.length < 2) return
    throw new ConfigError(
      `${missing.join(', ').replace(/, ([^,]*)$/, ' and $1')} are required: see src/docs/operators/configuration.md`,
    )
  }

  /**
   * Refuses settings that have no effect without another setting.
   *
   * @param needed the other setting, which is not set; or several, of which any is enough
   * @throws ConfigError that names the first of the settings that is set
   */
  refuseWithout(needed: string, names: readonly string[]): void {
    const given = names.find((name) => this.text(name, '').trim() !== '')
    if (given !== undefined) throw new ConfigError(`${needed} is required if ${given} is set`)
  }

  #get(name: string): string | undefined {
    this.#names.add(name)
    return this.#environment[name]
  }

  text(name: string, defaultValue: string): string {
    return this.#get(name) || defaultValue
  }

  required(name: string, what: string): string {
    const value = this.#get(name)
    if (!value) throw new ConfigError(`${name} is required: ${what}`)
    return value
  }

  integer(name: string, defaultValue: number, [min, max]: [min: number, max: number]): number {
    const value = this.#get(name) || String(defaultValue)
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN
    if (!(number >= min && number <= max)) throw new ConfigError(`${name} must be a whole number from ${min} to ${max}`)
    return number
  }

  /**
   * A comma-separated list.
   *
   * @param form what each item must be, in words. The refusal does not show the item, because an
   *   address can carry a password
   */
  list(name: string, form = 'a text', isValid: (item: string) => boolean = () => true): string[] {
    const list = (this.#get(name) ?? '').split(',').flatMap((item) => item.trim() || [])
    const bad = list.findIndex((item) => !isValid(item))
    if (bad >= 0) throw new ConfigError(`${name} cannot be used: its item ${bad + 1} must be ${form}`)
    return list
  }

  /** A setting with a fixed list of values. */
  choice<T extends string>(name: string, words: readonly T[], defaultValue: T): T {
    const value = this.text(name, defaultValue)
    const word = words.find((each) => each === value)
    if (word === undefined) throw new ConfigError(`${name} must be ${words.join(', ').replace(/, ([^,]*)$/, ' or $1')}`)
    return word
  }

  /** A JSON value; undefined if unset. */
  json(name: string): unknown {
    const value = this.#get(name)
    return value ? parseJson(value, name) : undefined
  }

  secret(name: string): Buffer {
    return secretBytes(name, this.required(name, '32 bytes or more, base64url'))
  }

  /** A comma-separated list: the current secret, then earlier secrets that are still accepted. */
  secrets(name: string): Secret[] {
    const values = this.required(name, '32 bytes or more, base64url').split(',')
    return values.map((value) => {
      const bytes = secretBytes(name, value.trim())
      return { id: keyId(bytes), bytes }
    })
  }

  token(name: string): string {
    const value = this.required(name, '32 characters or more')
    if (value.length < 32 || isDefault(value))
      throw new ConfigError(`${name} must be a random text of 32 characters or more`)
    if (!BEARER_TOKEN.test(value)) {
      throw new ConfigError(`${name} must have at most 1000 characters, and only letters, digits and - . _ ~ + /`)
    }
    return value
  }
}

/**
 * The values that `Authorization: Bearer` can carry (RFC 6750, 2.1), up to the length that the
 * log-in form accepts.
 */
const BEARER_TOKEN = /^(?=.{1,1000}$)[\w.~+/-]+=*$/

function secretBytes(name: string, value: string): Buffer {
  const bytes = Buffer.from(value, 'base64url')
  if (!/^[A-Za-z0-9_-]+$/.test(value) || bytes.length < 32 || isDefault(value)) {
    throw new ConfigError(`${name} must be 32 random bytes or more, written as base64url`)
  }
  return bytes
}

/** A name for a secret that reveals nothing of it. */
function keyId(secret: Buffer): string {
  return createHash('sha256').update('key-id').update(secret).digest('hex').slice(0, 12)
}

/**
 * Whether a secret looks like an example from a tutorial: few different characters, or one
 * repeated.
 */
function isDefault(value: string): boolean {
  return new Set(value).size < 8 || /changeme|password|secret|example/i.test(value)
}

/**
 * An address to which paths are appended, without a slash at its end. A user, query, fragment or
 * space is refused, because it would end up in the middle.
 *
 * @throws ConfigError
 */
export function httpAddress(name: string, value: string): string {
  if (!/^https?:\/\/[^/?#\s]+\S*$/.test(value) || !URL.canParse(value)) {
    throw new ConfigError(`${name} must be an http: or https: address without spaces`)
  }
  const { username, password } = new URL(value)
  if (username || password || /[?#]/.test(value)) throw new ConfigError(`${name} must have no user, query or fragment`)
  return value.replace(/\/+$/, '')
}

/** @throws ConfigError that names the variable if the value is not JSON */
export function parseJson(value: string, name: string): unknown {
  try {
    return JSON.parse(value)
  } catch (cause) {
    throw new ConfigError(`${name} must be JSON`, { cause })
  }
}
