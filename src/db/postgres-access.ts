import { readFileSync } from 'node:fs'
import pg from 'pg'
import { NamedSocket } from '../net/named-socket.ts'

/** SQLSTATE of a server, or of a pooler before it, that does not accept a startup parameter. */
const REFUSED_PARAMETER = ['08P01', '0A000']

/**
 * SQLSTATE of a server whose access rules have no line for this connection, with TLS or without.
 */
const REFUSED_CONNECTION = '28000'

/**
 * What our statements, and the parsers of their answers, depend on. Each stands here because a
 * role, a database or a server may have another value.
 */
const SESSION = {
  datestyle: 'ISO,YMD',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  // Shortest text that is read as the same double.
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  lock_timeout: '0',
}

/** Limits that the server keeps, milliseconds; 0 is none. */
export interface ServerLimits {
  statementMs: number
  idleInTransactionMs: number
}

const NO_LIMITS: ServerLimits = { statementMs: 0, idleInTransactionMs: 0 }

/**
 * How to reach the Postgres of an address. Every connection of the project is opened with these
 * options, which name everything that `pg` would otherwise read from variables of the process, and
 * everything of the session that we depend on. What an attempt to connect shows about the server is
 * learned, for the next attempt.
 */
export class PostgresAccess {
  readonly #url: URL
  readonly #settings: Record<string, string>
  readonly #mode: string
  #hasTls: boolean
  #takesSettings = true
  #triedBoth = false

  constructor(url: string, { statementMs, idleInTransactionMs }: ServerLimits = NO_LIMITS) {
    this.#url = new URL(url)
    this.#settings = {
      ...SESSION,
      statement_timeout: String(statementMs),
      idle_in_transaction_session_timeout: String(idleInTransactionMs),
    }
    this.#mode = sslModeOf(this.#url)
    this.#hasTls = !['disable', 'allow'].includes(this.#mode)
  }

  get options(): pg.ClientConfig {
    const { username, password, hostname, port, pathname, searchParams } = this.#url
    const ours = Object.entries(this.#settings).map(([name, value]) => `-c ${name}=${value}`)
    const isolation = '-c default_transaction_isolation=read\\ committed'
    // The last value of a setting holds.
    const options = [searchParams.get('options') ?? '', ...(this.#takesSettings ? [...ours, isolation] : [])].join(' ')
    return {
      user: decodeURIComponent(username) || undefined,
      password: decodeURIComponent(password) || undefined,
      host: searchParams.get('host') ?? decodeURIComponent(hostname).replace(/^\[(.+)\]$/, '$1'),
      port: Number(searchParams.get('port') ?? port) || 5432,
      database: decodeURIComponent(pathname.slice(1)) || undefined,
      application_name: searchParams.get('application_name') ?? 'agent-api-gateway',
      options,
      stream: () => new NamedSocket(),
      ssl: this.#hasTls ? tlsOptions(this.#url, this.#mode) : false,
      sslnegotiation: searchParams.get('sslnegotiation') === 'direct' ? 'direct' : 'postgres',
    }
  }

  /**
   * Whether sessions have our settings. A pooler keeps none: each transaction begins with `begin`
   * then.
   */
  get takesSettings(): boolean {
    return this.#takesSettings
  }

  /**
   * Begins a transaction that has our settings, which a pooler in transaction mode lets a client
   * set.
   */
  get begin(): string {
    const settings = Object.entries(this.#settings).map(([name, value]) => `set local ${name} = '${value}'`)
    return ['begin isolation level read committed', ...settings].join('; ')
  }

  /** @returns whether a failure to connect shows another way, which `options` now has */
  learn(error: unknown): boolean {
    const state = error instanceof pg.DatabaseError ? error.code : undefined
    if (this.#takesSettings && REFUSED_PARAMETER.includes(state ?? '')) {
      this.#takesSettings = false
      return true
    }
    // Both names leave it to the server (libpq, "SSL Mode Descriptions").
    if (this.#triedBoth || !['prefer', 'allow'].includes(this.#mode)) return false
    if (state !== REFUSED_CONNECTION && !(this.#hasTls && isWithoutTls(error))) return false
    this.#triedBoth = true
    this.#hasTls = !this.#hasTls
    return true
  }
}

/**
 * Opens one connection, in whatever way the server takes.
 * @throws Error of the last attempt
 */
export async function openClient(access: PostgresAccess, connectionTimeoutMillis = 5_000): Promise<pg.Client> {
  for (;;) {
    const client = new pg.Client({ ...access.options, connectionTimeoutMillis })
    // A connection that is lost between two steps shows in the next step.
    client.on('error', () => undefined)
    try {
      await client.connect()
      return client
    } catch (error) {
      await client.end().catch(() => undefined)
      if (!access.learn(error)) throw error
    }
  }
}

/**
 * `sslmode` of an address. Files of certificates without a mode, and `ssl=true`, have always meant
 * full verification here.
 */
function sslModeOf({ searchParams }: URL): string {
  const mode = searchParams.get('sslmode')
  if (mode !== null) return mode
  const ssl = searchParams.get('ssl')
  if (ssl === 'no-verify') return ssl
  const isVerified = ['sslrootcert', 'sslcert', 'sslkey'].some((name) => searchParams.has(name))
  return isVerified || ssl === 'true' || ssl === '1' ? 'verify-full' : 'disable'
}

/**
 * What `sslmode` means to libpq ("SSL Support"): all but two modes encrypt without a look at the
 * certificate, and `require` with an authority of its own is `verify-ca`.
 */
function tlsOptions({ searchParams }: URL, mode: string): pg.ClientConfig['ssl'] {
  const read = (name: string) => {
    const path = searchParams.get(name)
    return path === null || path === 'system' ? undefined : readFileSync(path, 'utf8')
  }
  const ca = read('sslrootcert')
  const files = { ca, cert: read('sslcert'), key: read('sslkey') }
  const isVerified = mode.startsWith('verify-') || (mode === 'require' && searchParams.has('sslrootcert'))
  if (!isVerified) return { ...files, rejectUnauthorized: false }
  // Without an authority of one's own the name is checked too: anybody gets a certificate of a
  // public authority.
  return mode === 'verify-full' || ca === undefined ? files : { ...files, checkServerIdentity: () => undefined }
}

/**
 * Whether the server has no TLS, or none that we can speak. `pg` gives the first of them no code.
 */
function isWithoutTls(error: unknown): boolean {
  const { code = '', message = '' } = Object(error) as { code?: string; message?: string }
  return /^(EPROTO|ERR_SSL_)/.test(code) || message === 'The server does not support SSL connections'
}
