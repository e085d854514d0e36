import { resolve } from 'node:path'
import { ConfigError, type Environment, type EnvironmentReader } from './environment-reader.ts'
import { type HttpConfig, readHttp } from './http.ts'
import { SECRET_NAMES } from './secrets.ts'

/** What `npm start` needs to know before there are services and secrets. */
export interface StartConfig extends HttpConfig {
  dataDir: string
  databaseUrl: string | undefined
  redisUrl: string | undefined
  processes: ProcessCounts
  /** Ports of the API nodes; 0: the system chooses. */
  webPorts: number[]
  /**
   * Ports for the metrics of each process, API nodes first, then workers, probe and console; 0:
   * none.
   */
  metricsPorts: number[]
  /** Whether a missing Redis may be installed with the system's package manager. */
  install: InstallPolicy
  /** Secrets given by the environment; they win over generated secrets. */
  secrets: Record<string, string>
  /** Whether a terminal shows every line, because somebody has set how much is logged. */
  isVerbose: boolean
  environment: Environment
}

/** How many processes of a kind `npm start` runs. */
export interface ProcessCounts {
  workers: number
  webNodes: number
}

/** `ask` shows the command first and, at a terminal, waits for a no; `no` never installs. */
export type InstallPolicy = 'ask' | 'no'

/** @throws ConfigError naming the variable that cannot be used */
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

/** The console and other ports of the first API node lie between it and the second. */
const WEB_NODE_STEP = 10

const PORT_MAX = 65_535

/** The ports of several listeners of one machine; 0 for all if the first is 0. */
function portsFrom(variable: string, first: number, { count, step }: { count: number; step: number }): number[] {
  const firstMax = PORT_MAX - (count - 1) * step
  if (first > firstMax)
    throw new ConfigError(`${variable} must be at most ${firstMax}: ${count} processes count on from it`)
  return Array.from({ length: count }, (_, index) => (first === 0 ? 0 : first + index * step))
}

export function readInstall(read: EnvironmentReader): InstallPolicy {
  return read.choice('INSTALL', ['ask', 'no'], 'ask')
}

/** Folder of the embedded services' files and of generated secrets. */
export function readDataDir(read: EnvironmentReader): string {
  return resolve(read.text('DATA_DIR', '.data'))
}

export function readProcesses(read: EnvironmentReader): ProcessCounts {
  return { workers: read.integer('WORKERS', 1, [1, 64]), webNodes: read.integer('WEB_NODES', 1, [1, 64]) }
}
