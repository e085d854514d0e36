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

/**
 * Level and form of the log: JSON lines unless stdout is a terminal.
 *
 * @throws ConfigError naming LOG_LEVEL
 */
export function readLog(read: EnvironmentReader): LogConfig {
  const level = read.choice('LOG_LEVEL', LEVELS, 'info')
  const name = read.text('PROCESS_NAME', '')
  return { level, pretty: process.stdout.isTTY === true, process: name === '' ? undefined : name }
}

/** Variables of OpenTelemetry that name a collector; each of them turns tracing on. */
const COLLECTORS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']

/** Whether calls are traced, and which share of them. */
export interface TracesConfig {
  isTraced: boolean
  /** 0 to 1. Spans of a call that another process began follow that process. */
  traceRatio: number
}

/**
 * Values of OTEL_TRACES_SAMPLER. A call begins its trace here, so that a sampler that follows a
 * parent does the same.
 */
const SAMPLERS = ['always_on', 'always_off', 'traceidratio'] as const

/** @throws ConfigError naming the variable that cannot be used */
export function readTraces(read: EnvironmentReader): TracesConfig {
  const isOff = read.text('OTEL_SDK_DISABLED', '').toLowerCase() === 'true'
  const sampler = read.text('OTEL_TRACES_SAMPLER', 'always_on').replace(/^parentbased_/, '')
  const kind = SAMPLERS.find((each) => each === sampler)
  if (kind === undefined)
    throw new ConfigError(`OTEL_TRACES_SAMPLER must be ${SAMPLERS.join(', ')}, or parentbased_ and one of them`)
  const ratio = Number(read.text('OTEL_TRACES_SAMPLER_ARG', '1'))
  if (kind === 'traceidratio' && !(ratio >= 0 && ratio <= 1))
    throw new ConfigError('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1')
  const traceRatio = kind === 'always_on' ? 1 : kind === 'always_off' ? 0 : ratio
  return { isTraced: hasCollector(read) && !isOff, traceRatio }
}

/**
 * Whether a collector is set.
 * @throws ConfigError where its address is none
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
