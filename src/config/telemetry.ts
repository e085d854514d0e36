import { ConfigError, type EnvironmentReader } from './environment-reader.ts'

export interface LogConfig {
  level: string
  /** For a terminal, rather than JSON lines. */
  pretty: boolean
  /** Name of the process in its lines, if several of a kind share an output: `web-2`. */
  process?: string | undefined
}

/** The log of calls in Postgres. */
export interface CallLogConfig {
  /** How long a row is kept, days; 0: there are no rows. */
  days: number
  /** What all rows may take, megabytes. */
  megabytes: number
}

/** @throws ConfigError naming CALL_LOG_DAYS or CALL_LOG_MEGABYTES */
export function readCallLog(read: EnvironmentReader): CallLogConfig {
  return {
    days: read.integer('CALL_LOG_DAYS', 7, [0, 90]),
    megabytes: read.integer('CALL_LOG_MEGABYTES', 2_048, [1, 10_000_000]),
  }
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** Level and form of the log: JSON lines unless stdout is a terminal. @throws ConfigError naming LOG_LEVEL */
export function readLog(read: EnvironmentReader): LogConfig {
  const level = read.choice('LOG_LEVEL', LEVELS, 'info')
  const name = read.text('PROCESS_NAME', '')
  return { level, pretty: process.stdout.isTTY === true, process: name === '' ? undefined : name }
}

/** Variables of OpenTelemetry that name a collector; each of them turns tracing on. */
const COLLECTORS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']

/** Whether a collector is set. @throws ConfigError if its address is no address */
export function readIsTraced(read: EnvironmentReader): boolean {
  const set = COLLECTORS.map((name) => ({ name, value: read.text(name, '') })).filter(({ value }) => value !== '')
  for (const { name, value } of set) {
    if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
      throw new ConfigError(`${name} must be an http: or https: address`)
    }
  }
  return set.length > 0
}
