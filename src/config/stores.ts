import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { ConfigError, type EnvironmentReader } from './environment-reader.ts'

/** Addresses of the stores. Several addresses of Redis are nodes of one Redis Cluster. */
export interface StoresConfig {
  databaseUrl: string
  redisUrls: string[]
  cacheRedisUrls: string[]
  /** Most connections to Postgres that a process opens for its main pool. */
  databaseConnections: number
  /** Name servers that replace the system's; empty: the system's name servers. */
  nameServers: string[]
}

/** @throws ConfigError that names the variable that is missing or cannot be used */
export function readStores(read: EnvironmentReader): StoresConfig {
  const redisUrls = read.list('REDIS_URL', REDIS_FORM, isRedisUrl)
  if (redisUrls.length === 0) throw new ConfigError('REDIS_URL is required: the address of Redis, redis://host:6379')
  const cacheRedisUrls = read.list('CACHE_REDIS_URL', REDIS_FORM, isRedisUrl)
  return {
    databaseUrl: readDatabaseUrl(read),
    databaseConnections: read.integer('DATABASE_CONNECTIONS', 10, [1, 1_000]),
    redisUrls,
    cacheRedisUrls: cacheRedisUrls.length > 0 ? cacheRedisUrls : redisUrls,
    nameServers: readNameServers(read),
  }
}

/** @throws ConfigError if an item of DNS_SERVERS is not an address */
export function readNameServers(read: EnvironmentReader): string[] {
  return read.list('DNS_SERVERS', 'an IP address, such as 10.0.0.2, 10.0.0.3:5353 or [2001:db8::1]:53', isNameServer)
}

/**
 * Environment variables with which libpq completes an address, and the parameter for which each
 * stands (PostgreSQL manual, "Environment Variables").
 */
const LIBPQ_VARIABLES = {
  PGSSLMODE: 'sslmode',
  PGSSLNEGOTIATION: 'sslnegotiation',
  PGSSLROOTCERT: 'sslrootcert',
  PGSSLCERT: 'sslcert',
  PGSSLKEY: 'sslkey',
  PGOPTIONS: 'options',
}

const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']

/**
 * The address of Postgres with all its parameters. Parameters of the address override the variables
 * of libpq. If the address says `sslmode=disable`, the variables about TLS are ignored.
 *
 * @throws ConfigError if DATABASE_URL is not set or is not an address of Postgres
 */
export function readDatabaseUrl(read: EnvironmentReader): string {
  const text = read.required('DATABASE_URL', FORM)
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) throw new ConfigError(`DATABASE_URL must be ${FORM}`)
  if (/%(?![\da-f]{2})/i.test(text))
    throw new ConfigError('DATABASE_URL has a % that encodes nothing: write % in a password as %25')
  const url = new URL(text)
  const { searchParams } = url
  for (const [variable, name] of Object.entries(LIBPQ_VARIABLES)) {
    const isOff = name.startsWith('ssl') && searchParams.get('sslmode') === 'disable'
    const value = read.text(variable, '')
    if (value !== '' && !isOff && !searchParams.has(name)) searchParams.set(name, value)
  }
  const mode = searchParams.get('sslmode')
  if (mode !== null && !SSL_MODES.includes(mode))
    throw new ConfigError(`DATABASE_URL cannot be used: its sslmode must be one of ${SSL_MODES.join(', ')}`)
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) checkFile(name, searchParams.get(name))
  return url.href
}

/** @throws ConfigError if a certificate file that DATABASE_URL names cannot be read */
function checkFile(name: string, path: string | null): void {
  if (path === null || path === 'system') return
  try {
    readFileSync(path)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ConfigError(`DATABASE_URL cannot be used: its ${name} cannot be read: ${reason}`, { cause })
  }
}

const FORM = 'the address of Postgres, postgres://user:password@host/database'

/** An IP address, with a port or without: `10.0.0.2`, `127.0.0.1:5353`, `[2001:db8::1]:53`. */
function isNameServer(value: string): boolean {
  if (isIP(value) !== 0) return true
  const parts = /^(?:(?<v4>[\d.]+)|\[(?<v6>[^\]]+)\]):(?<port>\d{1,5})$/.exec(value)?.groups
  return (
    parts !== undefined &&
    isIP(parts.v4 ?? parts.v6 ?? '') !== 0 &&
    /^0*[1-9]/.test(parts.port ?? '') &&
    Number(parts.port) <= 65_535
  )
}

/** Passwords often have these characters, and each of them ends a part of an address. */
const REDIS_FORM =
  'an address of Redis, redis://user:password@host:6379/0; in a password, write / as %2F, a comma as %2C, # as %23, ? as %3F and @ as %40'

/** An address of Redis. Its path, if it has one, is the number of a database. */
function isRedisUrl(value: string): boolean {
  return /^rediss?:\/\//.test(value) && URL.canParse(value) && /^\/?\d*$/.test(new URL(value).pathname)
}
