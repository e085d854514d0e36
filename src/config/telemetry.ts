import { ConfigError, type EnvironmentReader } from './environment-reader.ts'

export interface LogConfig {
  level: string
  /** For a terminal, rather than JSON lines. */
  pretty: boolean
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** Level and form of the log: JSON lines unless stdout is a terminal. @throws ConfigError naming LOG_LEVEL */
export function readLog(read: EnvironmentReader): LogConfig {
  return { level: read.choice('LOG_LEVEL', LEVELS, 'info'), pretty: process.stdout.isTTY === true }
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
