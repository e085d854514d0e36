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

/** Base address of an OpenTelemetry collector. @throws ConfigError where it is none */
export function readOtlpEndpoint(read: EnvironmentReader): string | undefined {
  const value = read.text('OTEL_EXPORTER_OTLP_ENDPOINT', '')
  if (value === '') return undefined
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    throw new ConfigError('OTEL_EXPORTER_OTLP_ENDPOINT must be an http: or https: address')
  }
  return value.replace(/\/+$/, '')
}
