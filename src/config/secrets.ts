import { ConfigError, type EnvironmentReader, type Secret } from './environment-reader.ts'

/** The kinds of processes that can run alone. */
export type ProcessKind = 'web' | 'worker' | 'probe' | 'ops'

/** Secrets without which the processes do not run. `npm start` generates missing secrets once. */
export const SECRET_NAMES = ['JWT_SECRET', 'KEY_PEPPER', 'ENCRYPTION_KEY', 'OPERATOR_TOKEN'] as const

export type SecretName = (typeof SECRET_NAMES)[number]

/**
 * The secrets that a process of each kind needs. The process runs without the others, so that an
 * attacker who takes over the process does not get them. For example, a worker reads what upstreams
 * send. It can make neither sessions nor keys, and cannot act as an operator.
 */
export const SECRETS_OF: Record<ProcessKind, readonly SecretName[]> = {
  web: ['JWT_SECRET', 'KEY_PEPPER', 'ENCRYPTION_KEY'],
  worker: ['ENCRYPTION_KEY'],
  probe: ['ENCRYPTION_KEY'],
  ops: ['ENCRYPTION_KEY', 'OPERATOR_TOKEN'],
}

/** Optional secrets, and the kinds of processes that use them. */
export const OPTIONAL_SECRETS: Record<string, readonly ProcessKind[]> = {
  CACHE_REDIS_URL: ['web', 'worker', 'probe', 'ops'],
  SMTP_URL: ['web'],
  OIDC_CLIENT_SECRET: ['web', 'ops'],
  TRUSTED_HEADER_SECRET: ['ops'],
}

/**
 * The secrets of a process. Reading a secret that its kind does not have throws an error, because
 * an empty secret would let everybody in.
 */
export class ProcessSecrets {
  readonly #values: Map<string, Secret[]>
  readonly #operatorToken: string | undefined

  /** @throws ConfigError that names the secret that is missing or cannot be used */
  constructor(read: EnvironmentReader, names: readonly SecretName[]) {
    const lists = names.filter((name) => name === 'JWT_SECRET' || name === 'ENCRYPTION_KEY')
    this.#values = new Map(lists.map((name) => [name, read.secrets(name)]))
    if (names.includes('KEY_PEPPER')) this.#values.set('KEY_PEPPER', [{ id: '', bytes: read.secret('KEY_PEPPER') }])
    this.#operatorToken = names.includes('OPERATOR_TOKEN') ? read.token('OPERATOR_TOKEN') : undefined
  }

  /**
   * The secrets that verify sessions. The first is the current secret, with which new sessions are
   * signed.
   */
  get jwt(): Secret[] {
    return this.#valuesOf('JWT_SECRET')
  }

  get keyPepper(): Buffer {
    return this.#valuesOf('KEY_PEPPER')[0]?.bytes ?? missing('KEY_PEPPER')
  }

  /**
   * The secrets that decrypt stored keys. The first is the current secret, with which keys are
   * encrypted.
   */
  get encryption(): Secret[] {
    return this.#valuesOf('ENCRYPTION_KEY')
  }

  get operatorToken(): string {
    return this.#operatorToken ?? missing('OPERATOR_TOKEN')
  }

  #valuesOf(name: SecretName): Secret[] {
    return this.#values.get(name) ?? missing(name)
  }
}

function missing(name: SecretName): never {
  throw new ConfigError(`${name} is not given to this kind of process`)
}
