import { resolve } from 'node:path'
import type { Environment, EnvironmentReader } from './environment-reader.ts'
import { type HttpConfig, readHttp } from './http.ts'
import { SECRET_NAMES } from './secrets.ts'

/** What `npm start` needs to know before there are services and secrets. */
export interface StartConfig extends HttpConfig {
  dataDir: string
  databaseUrl: string | undefined
  redisUrl: string | undefined
  processes: ProcessCounts
  /** Whether a missing Redis may be installed with the system's package manager. */
  install: InstallPolicy
  /** Secrets given by the environment; they win over generated ones. */
  secrets: Record<string, string>
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
  return {
    ...readHttp(read),
    dataDir: readDataDir(read),
    databaseUrl: environment.DATABASE_URL || undefined,
    redisUrl: environment.REDIS_URL || undefined,
    processes: readProcesses(read),
    install: readInstall(read),
    secrets: Object.fromEntries(given.map((name) => [name, environment[name] ?? ''])),
    environment,
  }
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
