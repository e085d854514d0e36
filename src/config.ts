import { type AccountsConfig, readAccounts } from './config/accounts.ts'
import { type Environment, EnvironmentReader } from './config/environment-reader.ts'
import { type HttpConfig, readHttp } from './config/http.ts'
import { NO_ACCESS, type OperatorAccess, readOperatorAccess } from './config/operator-access.ts'
import { type OperatorClient, readOperatorClient } from './config/operator-client.ts'
import { type PlanLimits, type PlanName, readPlans } from './config/plans.ts'
import { withSecretFiles } from './config/secret-files.ts'
import {
  OPTIONAL_SECRETS,
  type ProcessKind,
  ProcessSecrets,
  SECRET_NAMES,
  SECRETS_OF,
  type SecretName,
} from './config/secrets.ts'
import {
  type ProcessCounts,
  readDataDir,
  readInstall,
  readProcesses,
  readStart,
  type StartConfig,
} from './config/start.ts'
import { readDatabaseUrl, readNameServers, readStores, type StoresConfig } from './config/stores.ts'
import {
  type CallLogConfig,
  type LogConfig,
  readCallLog,
  readLog,
  readTraces,
  type TracesConfig,
} from './config/telemetry.ts'
import {
  type Contact,
  readBuiltIn,
  readContact,
  readUpstreams,
  type UpstreamSettings,
} from './config/upstream-variables.ts'

export type { SignupPolicy } from './config/accounts.ts'
export type { Environment } from './config/environment-reader.ts'
export { ConfigError, type Secret } from './config/environment-reader.ts'
export { isLocalAddress, isLocalListener } from './config/http.ts'
export { type ListenerAddress, orNaming } from './config/listener.ts'
export type { OidcProvider } from './config/oidc-provider.ts'
export type { OperatorClient } from './config/operator-client.ts'
export type { CallLimits, PlanLimits, PlanName } from './config/plans.ts'
export { OPTIONAL_SECRETS, type ProcessKind, SECRETS_OF } from './config/secrets.ts'
export type { InstallPolicy, StartConfig } from './config/start.ts'
export { parseCaps, type UpstreamSettings } from './config/upstream-variables.ts'

/**
 * All settings of a process, read once and checked. Each group has its own file in `src/config`.
 */
export interface Config extends StoresConfig {
  http: HttpConfig
  dataDir: string
  processes: ProcessCounts
  secrets: ProcessSecrets
  /** How people sign in to the operator console. */
  operatorAccess: OperatorAccess
  upstreams: Contact & {
    /** Settings of `UPSTREAM_<SLUG>_…`, by slug. */
    bySlug: Map<string, UpstreamSettings>
    /**
     * Names of all variables that begin with `UPSTREAM_`, including variables that belong to no
     * API.
     */
    variables: string[]
    /** Slugs that this worker serves; empty: all. */
    only: string[]
    /** Folder of OpenAPI documents. Each document is an API of the operator. */
    ownFolder: string | undefined
    /** Slugs of the built-in upstreams that are served; undefined: all. */
    builtIn: string[] | undefined
  }
  callTimeoutMs: number
  plans: Record<PlanName, PlanLimits>
  accounts: AccountsConfig
  throttles: {
    signupPerMinute: number
    /** Sign-ups from a public network per hour and per day. */
    signupPerHour: number
    signupPerDay: number
    loginFailuresPerMinute: number
    /** Look-ups of unknown API keys per minute, for each client address. */
    unknownKeysPerMinute: number
    /** Requests of an account outside the proxy route per second, on each node. */
    accountRequestsPerSecond: number
  }
  callLog: CallLogConfig
  /** How long the audit log is kept, days. */
  auditDays: number
  log: LogConfig
  /**
   * Whether traces are sent to an OpenTelemetry collector. Its libraries read their other `OTEL_`
   * variables themselves.
   */
  traces: TracesConfig
  /** Environment variables that no setting has read, and the names of all settings. */
  unknownVariables: { names: string[]; known: string[] }
}

/**
 * Reads the settings of a process that has every secret.
 *
 * @throws ConfigError that names the variable that is missing or cannot be used
 */
export function loadConfig(environment: Environment = process.env): Config {
  return readConfig(withSecretFiles(environment), SECRET_NAMES)
}

/**
 * Reads the settings of one kind of process, with only the secrets that this kind needs.
 *
 * @throws ConfigError that names the variable that is missing or cannot be used
 */
export function loadProcessConfig(kind: ProcessKind, environment: Environment = process.env): Config {
  return readConfig(withSecretFiles(environment), SECRETS_OF[kind])
}

function readConfig(environment: Environment, secretNames: readonly SecretName[]): Config {
  const read = new EnvironmentReader(environment)
  read.requireAll([...secretNames, 'DATABASE_URL', 'REDIS_URL'])
  const secrets = new ProcessSecrets(read, secretNames)
  const http = readHttp(read)
  const config: Omit<Config, 'unknownVariables'> = {
    http,
    dataDir: readDataDir(read),
    ...readStores(read),
    processes: readProcesses(read),
    secrets,
    operatorAccess: secretNames.includes('OPERATOR_TOKEN') ? readOperatorAccess(read, http.trustProxy) : NO_ACCESS,
    upstreams: {
      bySlug: readUpstreams(environment),
      variables: Object.keys(environment).filter((name) => name.startsWith('UPSTREAM_') && environment[name]),
      ...readContact(read),
      only: read.list('WORKER_UPSTREAMS'),
      ownFolder: read.text('UPSTREAMS_DIR', '') || undefined,
      builtIn: readBuiltIn(read),
    },
    callTimeoutMs: read.integer('CALL_TIMEOUT_MS', 30_000, [100, 600_000]),
    plans: readPlans(read),
    accounts: readAccounts(read, http.baseUrl, secretNames.includes('JWT_SECRET')),
    throttles: {
      signupPerMinute: read.integer('SIGNUP_PER_MINUTE', 60, [0, 1_000_000]),
      signupPerHour: read.integer('SIGNUP_PER_HOUR', 5, [0, 1_000_000]),
      signupPerDay: read.integer('SIGNUP_PER_DAY', 20, [0, 1_000_000]),
      loginFailuresPerMinute: read.integer('LOGIN_FAILURES_PER_MINUTE', 30, [0, 1_000_000]),
      unknownKeysPerMinute: read.integer('UNKNOWN_KEYS_PER_MINUTE', 120, [0, 1_000_000]),
      accountRequestsPerSecond: read.integer('ACCOUNT_REQUESTS_PER_SECOND', 100, [0, 1_000_000]),
    },
    callLog: readCallLog(read),
    auditDays: read.integer('AUDIT_DAYS', 400, [1, 36_500]),
    log: readLog(read),
    traces: readTraces(read),
  }
  return { ...config, unknownVariables: { names: Object.keys(environment).filter(read.isUnread), known: read.names } }
}

/** @throws ConfigError that names the variable that cannot be used */
export function loadStartConfig(environment: Environment = process.env): StartConfig {
  const whole = withSecretFiles(environment)
  return readStart(new EnvironmentReader(whole), whole)
}

/**
 * Whether a missing Redis may be installed.
 * @throws ConfigError if INSTALL has another value
 */
export function loadInstallPolicy(environment: Environment = process.env): StartConfig['install'] {
  return readInstall(new EnvironmentReader(environment))
}

/** @throws ConfigError if DATABASE_URL is not set or is no address of Postgres */
export function loadDatabaseUrl(environment: Environment = process.env): string {
  return readDatabaseUrl(new EnvironmentReader(withSecretFiles(environment)))
}

/** @throws ConfigError if an item of DNS_SERVERS is not an address */
export function loadNameServers(environment: Environment = process.env): string[] {
  return readNameServers(new EnvironmentReader(environment))
}

/** @throws ConfigError if there is no token, in the environment or in the data folder */
export async function loadOperatorClient(
  url: string | undefined,
  environment: Environment = process.env,
): Promise<OperatorClient> {
  return await readOperatorClient(url, withSecretFiles(environment))
}

/**
 * Variables for glibc, which reads them before our code runs. They make it return freed buffers of
 * large bodies to the system. After a burst of bodies of 1 MB, a worker kept 1.6 times its memory
 * without them, and 1.05 times with them. Other C libraries ignore them.
 */
const ALLOCATOR = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '131072' }

/**
 * Threads of Node. Password hashes use as many as the machine has cores, and files and compression
 * need more.
 */
const THREADS = { UV_THREADPOOL_SIZE: '16' }

/**
 * A V8 option for API nodes and workers, however they are started. V8 reads it before our code
 * runs. Without it, V8 splits the marking of a collection that freed buffers have started into
 * tasks, each of which wakes the event loop while V8's threads mark. For bodies of 1 MB this took
 * half of an API node's time.
 */
export const NODE_FLAGS = ['--no-incremental-marking-task']

/**
 * The environment for a process of this kind that this process starts. It lacks the secrets that
 * the kind does not need.
 */
export function childEnvironment(kind: ProcessKind, additions: Record<string, string>): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = { ...ALLOCATOR, ...THREADS, ...process.env, ...additions }
  for (const name of SECRET_NAMES) if (!SECRETS_OF[kind].includes(name)) delete environment[name]
  for (const [name, kinds] of Object.entries(OPTIONAL_SECRETS)) {
    if (kinds.includes(kind)) continue
    delete environment[name]
    delete environment[`${name}_FILE`]
  }
  // The secret was already read from its file.
  for (const name of [...SECRET_NAMES, ...Object.keys(additions)]) delete environment[`${name}_FILE`]
  return environment
}
