import { ConfigError, type EnvironmentReader } from './environment-reader.ts'

export interface LogConfig {
  level: string
  /** For a terminal, rather than JSON lines. */
  pretty: boolean
  /** Name of the process in its lines, where several of a kind share an output: `web-2`. */
  process?: string | undefined
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** Level and form of the log: JSON lines unless stdout is a terminal. @throws ConfigError naming LOG_LEVEL */
export function readLog(read: EnvironmentReader): LogConfig {
  const level = read.choice('LOG_LEVEL', LEVELS, 'info')
  const name = read.text('PROCESS_NAME', '')
  return { level, pretty: process.stdout.isTTY === true, process: name === '' ? undefined : name }
}

/** Variables of OpenTelemetry that name a collector; one of them turns tracing on. */
const COLLECTORS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']

/** Whether a collector is set. @throws ConfigError where its address is none */
export function readIsTraced(read: EnvironmentReader): boolean {
  const set = COLLECTORS.map((name) => ({ name, value: read.text(name, '') })).filter(({ value }) => value !== '')
  for (const { name, value } of set) {
    if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
      throw new ConfigError(`${name} must be an http: or https: address`)
    }
  }
  return set.length > 0
}
