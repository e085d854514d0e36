import { stdout } from 'node:process'
import { styleText } from 'node:util'
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from './config.ts'

export type Log = Logger

/**
 * Members that may contain a secret, at any place of a line. They are removed before it is written.
 */
const REDACTED = [
  'password',
  'token',
  'key',
  'authorization',
  'cookie',
  '*.password',
  '*.token',
  '*.key',
  '*.authorization',
  '*.cookie',
  // Errors of Redis carry the failed command, with parameters and bodies.
  '*.command',
  '*.*.command',
  '*.*.*.command',
]

/**
 * How long lines are kept to be written in batches, milliseconds. A normal end and a fatal error
 * write what is left. A killed process loses the lines of this time.
 */
const LINES_KEPT_MS = 50
const BATCH_BYTES = 16_000

/** The loggers of this process. */
const logs = new Set<Log>()
const gatheredLines = new Set<GatheredLines>()

// pino writes the remaining lines of its outputs when the process ends. This listener runs before
// pino's.
process.on('exit', () => {
  for (const lines of gatheredLines) lines.handOver()
})

/**
 * The logger of a process: JSON lines, or readable lines at a terminal.
 * @param process the kind of the process: web, worker, probe, ops
 */
export function createLog(config: Config['log'], process: string): Log {
  const options: LoggerOptions = {
    level: config.level,
    base: { process: config.process ?? process },
    redact: { paths: REDACTED, censor: '[redacted]' },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  }
  if (config.pretty) {
    const label = config.process ?? process
    const output = { isTerminal: true, isVerbose: true }
    const write = (lines: string) => {
      for (const line of lines.trimEnd().split('\n')) stdout.write(`${formatLogLine(label, line, output)}\n`)
    }
    return rememberForFlush(pino(options, { write }))
  }
  return rememberForFlush(pino(options, new GatheredLines()))
}

/**
 * An output that writes in batches. A batch is written `LINES_KEPT_MS` after its first line, or
 * when it is full. pino's own `periodicFlush` is not used, because it makes 20 empty writes a
 * second while there are no lines.
 */
export class GatheredLines implements DestinationStream {
  /** With a least length of 0, `flush` would not wait for a running write. */
  readonly #output: ReturnType<typeof pino.destination>
  #lines: string[] = []
  #length = 0
  #timer: NodeJS.Timeout | undefined

  /** @param dest descriptor or path of a file; default: standard output */
  constructor(dest: number | string = stdout.fd) {
    this.#output = pino.destination({ dest, sync: false, minLength: 1 })
    gatheredLines.add(this)
  }

  write(line: string): void {
    this.#lines.push(line)
    this.#length += line.length
    if (this.#length >= BATCH_BYTES) this.handOver()
    else this.#timer ??= setTimeout(() => this.handOver(), LINES_KEPT_MS).unref()
  }

  handOver(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#length === 0) return
    const lines = this.#lines.join('')
    this.#lines = []
    this.#length = 0
    this.#output.write(lines)
  }

  flush(done?: () => void): void {
    this.handOver()
    this.#output.flush(done)
  }

  /** pino calls it after a line with the level fatal. */
  flushSync(): void {
    this.handOver()
    this.#output.flushSync()
  }
}

function rememberForFlush(log: Log): Log {
  logs.add(log)
  return log
}

/**
 * Writes the remaining lines of all logs. Call it before the process ends, because pino's own
 * handler retries a broken pipe for ever unless it has met the broken pipe before.
 */
export async function flushLogs(): Promise<void> {
  // If a line cannot be written, it is lost, because there is no other place to report it.
  await Promise.all([...logs].map((log) => new Promise<void>((resolve) => log.flush(() => resolve()))))
}

/** A terminal shows what a person needs. Any other output gets every line. */
export interface OutputOptions {
  isTerminal: boolean
  /** Whether a terminal gets every line too, because LOG_LEVEL is set. */
  isVerbose: boolean
}

/** Least levels of lines that are shown at a terminal. */
const SHOWN_LEVELS: Record<string, 'yellow' | 'red'> = { warn: 'yellow', error: 'red', fatal: 'red' }

/**
 * A line of a process as it is printed. If a program reads the output, it is unchanged. At a
 * terminal it becomes words, and only calls and problems are shown. Undefined if the line is not
 * shown.
 */
export function formatLogLine(
  label: string,
  line: string,
  { isTerminal, isVerbose }: OutputOptions,
): string | undefined {
  const entry = parseEntry(line)
  if (!isTerminal) return entry ? line : `${label}: ${line}`
  const prefix = styleText('dim', label.padEnd(8), { validateStream: false })
  // This is not one of our lines: something went wrong before there was a log.
  if (!entry) return `${prefix} ${line}`
  const color = SHOWN_LEVELS[String(entry.level)]
  if (entry.msg === 'call') return `${prefix} ${callWords(entry)}`
  if (!color && !isVerbose) return undefined
  const words = entryWords(entry)
  if (!color) return `${prefix} ${words}`
  const stack = isVerbose && color === 'red' ? stackOf(entry) : ''
  return `${prefix} ${styleText(color, `${String(entry.level).toUpperCase()} ${words}`, { validateStream: false })}${stack}`
}

function parseEntry(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** A call in words: `weather/current 200 in 31 ms (test)`; a failed call has its code and cause. */
function callWords({ slug, endpoint, status, code, reason, ms, mode, cache }: Record<string, unknown>): string {
  const marks = [mode === 'test' ? 'test' : '', /^agw; hit/.test(String(cache)) ? 'stored' : ''].filter(Boolean)
  const failure = code === undefined ? '' : ` ${code}${reason === undefined ? '' : ` (${reason})`}`
  const words = `${slug}${endpoint ?? ''} ${status}${failure} in ${Math.round(Number(ms))} ms`
  return marks.length > 0 ? `${words} (${marks.join(', ')})` : words
}

/** Message and members. An error is written as its message, without its stack. */
function entryWords({ level: _level, time: _time, process: _process, msg, ...rest }: Record<string, unknown>): string {
  const details = Object.entries(rest).map(([name, value]) => {
    const isError = name === 'err' && typeof value === 'object' && value !== null
    if (isError) return `(${Object(value).message})`
    return `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`
  })
  return [msg ?? '', ...details].join(' ')
}

function stackOf({ err }: Record<string, unknown>): string {
  const stack: unknown = Object(err).stack
  return typeof stack === 'string' ? `\n${stack}` : ''
}
