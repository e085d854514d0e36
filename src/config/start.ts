import { resolve } from 'node:path'
import { ConfigError, type Environment, type EnvironmentReader } from './environment-reader.ts'
import { type HttpConfig, readHttp } from './http.ts'
import { SECRET_NAMES } from './secrets.ts'

/** What `npm start` needs before stores and secrets exist. */
export interface StartConfig extends HttpConfig {
  dataDir: string
  databaseUrl: string | undefined
  redisUrl: string | undefined
  processes: ProcessCounts
  /** Ports of the API nodes; 0: the system chooses a port. */
  webPorts: number[]
  /**
   * Ports for the metrics of each process: API nodes first, then workers, probe and console. 0: no
   * metrics.
   */
  metricsPorts: number[]
  /** Whether `npm start` may install a missing Redis with the system's package manager. */
  install: InstallPolicy
  /** Secrets that the environment sets. They override generated secrets. */
  secrets: Record<string, string>
  /** Whether the terminal shows every log line, because LOG_LEVEL is set. */
  isVerbose: boolean
  environment: Environment
}

/** How many processes of each kind `npm start` runs. */
export interface ProcessCounts {
  workers: number
  webNodes: number
}

/** `ask` shows the command first and, at a terminal, waits for a no. `no` never installs. */
export type InstallPolicy = 'ask' | 'no'

/** @throws ConfigError that names the variable that cannot be used */
export function readStart(read: EnvironmentReader, environment: Environment): StartConfig {
  const given = SECRET_NAMES.filter((name) => environment[name])
  const http = readHttp(read)
  const processes = readProcesses(read)
  const { webNodes, workers } = processes
  return {
    ...http,
    dataDir: readDataDir(read),
    databaseUrl: environment.DATABASE_URL || undefined,
    redisUrl: environment.REDIS_URL || undefined,
    processes,
    webPorts: portsFrom('PORT', http.port, { count: webNodes, step: WEB_NODE_STEP }),
    metricsPorts: portsFrom('METRICS_PORT', http.metricsPort, { count: webNodes + workers + 2, step: 1 }),
    install: readInstall(read),
    secrets: Object.fromEntries(given.map((name) => [name, environment[name] ?? ''])),
    isVerbose: read.text('LOG_LEVEL', '') !== '',
    environment,
  }
}

/**
 * Distance between the ports of two API nodes. The console and other ports of the first node lie
 * between.
 */
const WEB_NODE_STEP = 10

const PORT_MAX = 65_535

/** The ports of several listeners on one machine; all 0 if the first is 0. */
function portsFrom(variable: string, first: number, { count, step }: { count: number; step: number }): number[] {
  const firstMax = PORT_MAX - (count - 1) * step
  if (first > firstMax)
    throw new ConfigError(
      `${variable} must be at most ${firstMax}, because ${count} processes use the ports from it upwards`,
    )
  return Array.from({ length: count }, (_, index) => (first === 0 ? 0 : first + index * step))
}

export function readInstall(read: EnvironmentReader): InstallPolicy {
  return read.choice('INSTALL', ['ask', 'no'], 'ask')
}

/** The folder that holds the files of the embedded services and the generated secrets. */
export function readDataDir(read: EnvironmentReader): string {
  return resolve(read.text('DATA_DIR', '.data'))
}

export function readProcesses(read: EnvironmentReader): ProcessCounts {
  return { workers: read.integer('WORKERS', 1, [1, 64]), webNodes: read.integer('WEB_NODES', 1, [1, 64]) }
}
