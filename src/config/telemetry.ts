import { ConfigError, type EnvironmentReader } from './environment-reader.ts'

export interface LogConfig {
  level: string
  /** Plain text for a terminal instead of JSON lines. */
  pretty: boolean
  /**
   * Name of the process in its log lines, if several processes of a kind write to one output:
   * `web-2`.
   */
  process?: string | undefined
}

/** The log of calls in Postgres. */
export interface CallLogConfig {
  /** How long a row is kept, days; 0: there are no rows. */
  days: number
  /** Most space of all rows, megabytes. */
  megabytes: number
}

/** @throws ConfigError that names CALL_LOG_DAYS or CALL_LOG_MEGABYTES */
export function readCallLog(read: EnvironmentReader): CallLogConfig {
  return {
    days: read.integer('CALL_LOG_DAYS', 7, [0, 90]),
    megabytes: read.integer('CALL_LOG_MEGABYTES', 2_048, [1, 10_000_000]),
  }
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/**
 * Level and form of the log: JSON lines unless stdout is a terminal.
 *
 * @throws ConfigError that names LOG_LEVEL
 */
export function readLog(read: EnvironmentReader): LogConfig {
  const level = read.choice('LOG_LEVEL', LEVELS, 'info')
  const name = read.text('PROCESS_NAME', '')
  return { level, pretty: process.stdout.isTTY === true, process: name === '' ? undefined : name }
}

/** Variables of OpenTelemetry that name a collector. If one of them is set, calls are traced. */
const COLLECTORS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']

/** Whether calls are traced, and which share of them. */
export interface TracesConfig {
  isTraced: boolean
  /**
   * The share of calls that are traced, 0 to 1. A call that another process began is traced if that
   * process traces it.
   */
  traceRatio: number
}

/**
 * Values of OTEL_TRACES_SAMPLER. Traces begin in the gateway, so a `parentbased_` sampler does the
 * same as the sampler without this prefix.
 */
const SAMPLERS = ['always_on', 'always_off', 'traceidratio'] as const

/** @throws ConfigError that names the variable that cannot be used */
export function readTraces(read: EnvironmentReader): TracesConfig {
  const isOff = read.text('OTEL_SDK_DISABLED', '').toLowerCase() === 'true'
  const sampler = read.text('OTEL_TRACES_SAMPLER', 'always_on').replace(/^parentbased_/, '')
  const kind = SAMPLERS.find((each) => each === sampler)
  if (kind === undefined)
    throw new ConfigError(`OTEL_TRACES_SAMPLER must be ${SAMPLERS.join(', ')}, or parentbased_ and one of them`)
  const ratio = Number(read.text('OTEL_TRACES_SAMPLER_ARG', '').trim() || '1')
  if (kind === 'traceidratio' && !(ratio >= 0 && ratio <= 1))
    throw new ConfigError('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')
  const traceRatio = kind === 'always_on' ? 1 : kind === 'always_off' ? 0 : ratio
  return { isTraced: hasCollector(read) && !isOff, traceRatio }
}

/**
 * Whether a collector is set.
 * @throws ConfigError if its address is not an http(s) address
 */
function hasCollector(read: EnvironmentReader): boolean {
  const set = COLLECTORS.map((name) => ({ name, value: read.text(name, '') })).filter(({ value }) => value !== '')
  for (const { name, value } of set) {
    if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
      throw new ConfigError(`${name} must be an http: or https: address`)
    }
  }
  return set.length > 0
}
