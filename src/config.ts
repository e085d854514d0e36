import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { ConfigError, type Environment, EnvironmentReader, type Secret } from './config/environment-reader.ts'
import { readUpstreams, type UpstreamSettings } from './config/upstream-variables.ts'

export { parseCaps, type UpstreamSettings } from './config/upstream-variables.ts'
export { ConfigError, type Secret }

export interface PlanLimits {
  perMinute: number
  perMonth: number
  inFlight: number
}

export type PlanName = 'Free' | 'Pro' | 'Elite' | 'Elite (contract)'

/** All settings of a process, read once and checked. */
export interface Config {
  http: {
    host: string
    port: number
    opsPort: number
    metricsPort: number
    /** Public address, without a slash at the end. */
    baseUrl: string
    trustProxy: string[]
    tls: { certFile: string; keyFile: string } | undefined
    redirectPort: number | undefined
  }
  dataDir: string
  databaseUrl: string
  redisUrls: string[]
  cacheRedisUrls: string[]
  processes: { workers: number; webNodes: number }
  secrets: { jwt: Secret[]; keyPepper: Buffer; encryption: Secret[]; operatorToken: string }
  upstreams: {
    /** Settings of `UPSTREAM_<SLUG>_…`, by slug. */
    bySlug: Map<string, UpstreamSettings>
    /** Who operates this gateway, for the `User-Agent`. */
    contact: string
    /** Slugs this worker serves; all when empty. */
    only: string[]
  }
  callTimeoutMs: number
  plans: Record<PlanName, PlanLimits>
  throttles: { signupPerMinute: number; loginFailuresPerMinute: number }
  log: { level: string; pretty: boolean }
  /** Base address of an OpenTelemetry collector (OTLP over HTTP); no traces without one. */
  otlpEndpoint: string | undefined
}

const PLANS: Record<PlanName, PlanLimits> = {
  Free: { perMinute: 10, perMonth: 1_000, inFlight: 5 },
  Pro: { perMinute: 100, perMonth: 100_000, inFlight: 25 },
  Elite: { perMinute: 500, perMonth: 1_000_000, inFlight: 100 },
  'Elite (contract)': { perMinute: 500, perMonth: 10_000_000, inFlight: 100 },
}

/**
 * Reads the settings of a process from the environment.
 *
 * @throws ConfigError naming the variable that is missing or cannot be used
 */
export function loadConfig(environment: Environment = process.env): Config {
  const read = new EnvironmentReader(environment)
  const port = read.integer('PORT', 3000, 0, 65_535)
  const redisUrls = read.list('REDIS_URL', isRedisUrl)
  if (redisUrls.length === 0) throw new ConfigError('REDIS_URL is required: the address of Redis, redis://host:6379')
  return {
    http: readHttp(read, port),
    dataDir: dataDir(environment),
    databaseUrl: loadDatabaseUrl(environment),
    redisUrls,
    cacheRedisUrls: or(read.list('CACHE_REDIS_URL', isRedisUrl), redisUrls),
    processes: readProcesses(environment),
    secrets: {
      jwt: read.secrets('JWT_SECRET'),
      keyPepper: read.secret('KEY_PEPPER'),
      encryption: read.secrets('ENCRYPTION_KEY'),
      operatorToken: read.token('OPERATOR_TOKEN'),
    },
    upstreams: {
      bySlug: readUpstreams(environment),
      contact: read.text('CONTACT', 'https://github.com/agent-api-gateway/agent-api-gateway'),
      only: read.list('WORKER_UPSTREAMS', () => true),
    },
    callTimeoutMs: read.integer('CALL_TIMEOUT_MS', 30_000, 100, 600_000),
    plans: readPlans(environment),
    throttles: {
      signupPerMinute: read.integer('SIGNUP_PER_MINUTE', 60, 0, 1_000_000),
      loginFailuresPerMinute: read.integer('LOGIN_FAILURES_PER_MINUTE', 30, 0, 1_000_000),
    },
    log: readLog(environment),
    otlpEndpoint: readOtlpEndpoint(read),
  }
}

/** What `npm start` needs to know before there are services and secrets. */
export interface StartConfig {
  dataDir: string
  databaseUrl: string | undefined
  redisUrl: string | undefined
  host: string
  port: number
  opsPort: number
  metricsPort: number
  baseUrl: string
  processes: Config['processes']
  /** Secrets given by the environment; they win over generated ones. */
  secrets: Record<string, string>
  environment: Environment
}

/** @throws ConfigError naming the variable that cannot be used */
export function loadStartConfig(environment: Environment = process.env): StartConfig {
  const read = new EnvironmentReader(environment)
  const port = read.integer('PORT', 3000, 0, 65_535)
  const given = ['JWT_SECRET', 'KEY_PEPPER', 'ENCRYPTION_KEY', 'OPERATOR_TOKEN'].filter((name) => environment[name])
  const { baseUrl, host, opsPort, metricsPort } = readHttp(read, port)
  return {
    dataDir: dataDir(environment),
    databaseUrl: environment.DATABASE_URL || undefined,
    redisUrl: environment.REDIS_URL || undefined,
    host,
    port,
    opsPort,
    metricsPort,
    baseUrl,
    processes: readProcesses(environment),
    secrets: Object.fromEntries(given.map((name) => [name, environment[name] ?? ''])),
    environment,
  }
}

/** @throws ConfigError when DATABASE_URL is not set */
export function loadDatabaseUrl(environment: Environment = process.env): string {
  return new EnvironmentReader(environment).required(
    'DATABASE_URL',
    'the address of Postgres, postgres://user:password@host/database',
  )
}

/** Where the operator API is, and with what the command line asks it. */
export interface OperatorClient {
  url: string
  token: string
  /** Who asks, for the audit log. */
  name: string
}

/** @throws ConfigError when there is no token, in the environment or in the data folder */
export async function loadOperatorClient(
  url: string | undefined,
  environment: Environment = process.env,
): Promise<OperatorClient> {
  const { host, opsPort } = readHttp(
    new EnvironmentReader(environment),
    new EnvironmentReader(environment).integer('PORT', 3000, 0, 65_535),
  )
  const token = environment.OPERATOR_TOKEN || (await keptOperatorToken(environment))
  if (!token) throw new ConfigError('OPERATOR_TOKEN is required: the token that opens the operator API')
  const name = (environment.USER ?? '').replace(/[^\w.@-]/g, '').slice(0, 64)
  return { url: (url ?? `http://${host}:${opsPort}`).replace(/\/+$/, ''), token, name: name || 'operator' }
}

async function keptOperatorToken(environment: Environment): Promise<string | undefined> {
  // `npm start` made it; where it did not run there is no such file.
  const text = await readFile(join(dataDir(environment), 'secrets.json'), 'utf8').catch(() => '{}')
  const { OPERATOR_TOKEN: token } = Object(parseJson(text, 'secrets.json')) as { OPERATOR_TOKEN?: unknown }
  return typeof token === 'string' ? token : undefined
}

/** The environment of a process that this one starts. */
export function childEnvironment(additions: Record<string, string>): NodeJS.ProcessEnv {
  return { ...process.env, ...additions }
}

function readHttp(read: EnvironmentReader, port: number): Config['http'] {
  const certFile = read.text('TLS_CERT_FILE', '')
  const keyFile = read.text('TLS_KEY_FILE', '')
  if ((certFile === '') !== (keyFile === '')) throw new ConfigError('TLS_CERT_FILE and TLS_KEY_FILE go together')
  const redirectPort = read.integer('HTTP_REDIRECT_PORT', 0, 0, 65_535)
  const baseUrl = read.text('BASE_URL', `http://localhost:${port}`).replace(/\/+$/, '')
  if (!/^https?:\/\/[^/?#\s]+/.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new ConfigError('BASE_URL must be an http: or https: address')
  }
  if ((certFile !== '' || redirectPort !== 0) && !baseUrl.startsWith('https:')) {
    throw new ConfigError('BASE_URL must be the public https: address when TLS_CERT_FILE or HTTP_REDIRECT_PORT is set')
  }
  return {
    host: read.text('HOST', '127.0.0.1'),
    port,
    opsPort: read.integer('OPS_PORT', port === 0 ? 0 : port + 1, 0, 65_535),
    metricsPort: read.integer('METRICS_PORT', 0, 0, 65_535),
    baseUrl,
    trustProxy: read.list('TRUST_PROXY', isAddressOrRange),
    tls: certFile === '' ? undefined : { certFile, keyFile },
    redirectPort: redirectPort === 0 ? undefined : redirectPort,
  }
}

/** Folder of the embedded services' files and of generated secrets. */
export function dataDir(environment: Environment = process.env): string {
  return resolve(environment.DATA_DIR || '.data')
}

/** How many processes of a kind `npm start` runs. */
export function readProcesses(environment: Environment = process.env): Config['processes'] {
  const read = new EnvironmentReader(environment)
  return { workers: read.integer('WORKERS', 1, 1, 64), webNodes: read.integer('WEB_NODES', 1, 1, 64) }
}

/** Level and form of the log: JSON lines unless stdout is a terminal. */
export function readLog(environment: Environment = process.env): Config['log'] {
  const level = environment.LOG_LEVEL || 'info'
  if (!['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'].includes(level)) {
    throw new ConfigError('LOG_LEVEL must be trace, debug, info, warn, error, fatal or silent')
  }
  return { level, pretty: process.stdout.isTTY === true }
}

function readOtlpEndpoint(read: EnvironmentReader): string | undefined {
  const value = read.text('OTEL_EXPORTER_OTLP_ENDPOINT', '')
  if (value === '') return undefined
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    throw new ConfigError('OTEL_EXPORTER_OTLP_ENDPOINT must be an http: or https: address')
  }
  return value.replace(/\/+$/, '')
}

function readPlans(environment: Environment): Record<PlanName, PlanLimits> {
  const plans = structuredClone(PLANS)
  if (!environment.PLAN_LIMITS) return plans
  const override = asObject(parseJson(environment.PLAN_LIMITS, 'PLAN_LIMITS'), 'PLAN_LIMITS')
  for (const [name, limits] of Object.entries(override)) {
    if (!Object.hasOwn(plans, name)) throw new ConfigError(`PLAN_LIMITS names no plan with "${name}"`)
    for (const [limit, value] of Object.entries(asObject(limits, `PLAN_LIMITS: ${name}`))) {
      const known = limit === 'perMinute' || limit === 'perMonth' || limit === 'inFlight'
      if (!known || !Number.isSafeInteger(value) || Number(value) < 1) {
        throw new ConfigError(
          `PLAN_LIMITS: ${name}.${limit} must be perMinute, perMonth or inFlight, a whole number from 1`,
        )
      }
      plans[name as PlanName][limit] = Number(value)
    }
  }
  return plans
}

function asObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new ConfigError(`${name} must be a JSON object`)
}

function parseJson(value: string, name: string): unknown {
  try {
    return JSON.parse(value)
  } catch (cause) {
    throw new ConfigError(`${name} must be JSON`, { cause })
  }
}

function isRedisUrl(value: string): boolean {
  return /^rediss?:\/\//.test(value) && URL.canParse(value)
}

/** An address, a CIDR, or one of the named ranges that Fastify's `trustProxy` knows. */
function isAddressOrRange(value: string): boolean {
  const [address = '', length, ...rest] = value.split('/')
  const version = isIP(address)
  if (version === 0) return ['loopback', 'linklocal', 'uniquelocal'].includes(value)
  if (length === undefined) return true
  return rest.length === 0 && /^\d{1,3}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128)
}

function or<T>(list: T[], otherwise: T[]): T[] {
  return list.length > 0 ? list : otherwise
}
