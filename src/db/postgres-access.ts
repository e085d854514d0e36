import { readFileSync } from 'node:fs'
import pg from 'pg'
import { NamedSocket } from '../net/named-socket.ts'
import { sqlState } from './postgres-errors.ts'

/** SQLSTATEs with which a server, or a pooler before it, refuses a startup parameter. */
const REFUSED_PARAMETER = ['08P01', '0A000']

/**
 * SQLSTATE of a server whose access rules (pg_hba.conf) do not allow this connection, with or
 * without TLS.
 */
const REFUSED_CONNECTION = '28000'

/**
 * Session settings on which our statements, and the parsers of their answers, depend. They are set
 * explicitly, because a role, a database or a server may have other defaults.
 */
const SESSION = {
  datestyle: 'ISO,YMD',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  // Writes the shortest text that parses to the same double.
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  // The pool closes idle connections itself.
  idle_session_timeout: '0',
}

/** Limits that the server enforces, milliseconds; 0: no limit. */
export interface ServerLimits {
  statementMs: number
  idleInTransactionMs: number
  /** Longest that a statement waits for a lock; absent: no limit. */
  lockMs?: number
}

const NO_LIMITS: ServerLimits = { statementMs: 0, idleInTransactionMs: 0 }

/**
 * How to connect to the Postgres of an address. All connections of the project are opened with
 * these options. The options name everything that `pg` would otherwise read from environment
 * variables, and all session settings on which we depend. If an attempt to connect fails in a way
 * that shows what the server supports, the next attempt uses other options.
 */
export class PostgresAccess {
  readonly #url: URL
  readonly #settings: Record<string, string>
  readonly #mode: string
  #hasTls: boolean
  #takesSettings = true
  #triedBoth = false

  constructor(url: string, { statementMs, idleInTransactionMs, lockMs = 0 }: ServerLimits = NO_LIMITS) {
    this.#url = new URL(url)
    this.#settings = {
      ...SESSION,
      lock_timeout: String(lockMs),
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
    // If a setting is given twice, the last value counts.
    const options = [searchParams.get('options') ?? '', ...(this.#takesSettings ? [...ours, isolation] : [])].join(' ')
    return {
      user: (searchParams.get('user') ?? decodeURIComponent(username)) || undefined,
      password: (searchParams.get('password') ?? decodeURIComponent(password)) || undefined,
      host: searchParams.get('host') ?? decodeURIComponent(hostname).replace(/^\[(.+)\]$/, '$1'),
      port: Number(searchParams.get('port') ?? port) || 5432,
      database: (searchParams.get('dbname') ?? decodeURIComponent(pathname.slice(1))) || undefined,
      application_name: searchParams.get('application_name') ?? 'agent-api-gateway',
      options,
      stream: () => new NamedSocket(),
      ssl: this.#hasTls ? tlsOptions(this.#url, this.#mode) : false,
      sslnegotiation: searchParams.get('sslnegotiation') === 'direct' ? 'direct' : 'postgres',
    }
  }

  /**
   * Whether sessions have our settings. Behind a pooler, which keeps no settings, they do not, and
   * each transaction begins with `begin`.
   */
  get takesSettings(): boolean {
    return this.#takesSettings
  }

  /**
   * The statement that begins a transaction with our settings. A pooler in transaction mode allows
   * clients to set them there.
   */
  get begin(): string {
    const settings = Object.entries(this.#settings).map(([name, value]) => `set local ${name} = '${value}'`)
    return ['begin isolation level read committed', ...settings].join('; ')
  }

  /** @returns whether the failure shows another way to connect, which `options` now has */
  learn(error: unknown): boolean {
    const state = sqlState(error)
    if (this.#takesSettings && REFUSED_PARAMETER.includes(state ?? '')) {
      this.#takesSettings = false
      return true
    }
    // In both modes the server decides whether TLS is used (libpq, "SSL Mode Descriptions").
    if (this.#triedBoth || !['prefer', 'allow'].includes(this.#mode)) return false
    if (state !== REFUSED_CONNECTION && !(this.#hasTls && isWithoutTls(error))) return false
    this.#triedBoth = true
    this.#hasTls = !this.#hasTls
    return true
  }
}

/**
 * Opens one connection in any way that the server accepts.
 * @throws the error of the last attempt
 */
export async function openClient(access: PostgresAccess, connectionTimeoutMillis = 5_000): Promise<pg.Client> {
  for (;;) {
    const client = new pg.Client({ ...access.options, connectionTimeoutMillis })
    // If a connection is lost between two steps, the next step fails.
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
 * The `sslmode` of an address. If the address names certificate files but no mode, or says
 * `ssl=true`, the gateway verifies fully.
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
 * TLS options for each `sslmode`, as libpq defines them ("SSL Support"): all modes but two encrypt
 * without checking the certificate, and `require` with an own authority means `verify-ca`.
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
  // With public authorities the name must be checked too, because anybody can get a certificate of
  // a public authority.
  return mode === 'verify-full' || ca === undefined ? files : { ...files, checkServerIdentity: () => undefined }
}

/**
 * Whether the server has no TLS, or no TLS version that we support. `pg` gives the first error no
 * code.
 */
function isWithoutTls(error: unknown): boolean {
  const { code = '', message = '' } = Object(error) as { code?: string; message?: string }
  return /^(EPROTO|ERR_SSL_)/.test(code) || message === 'The server does not support SSL connections'
}
