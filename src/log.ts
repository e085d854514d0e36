import { type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from './config.ts'

export type Log = Logger

/** Members that may carry a secret, wherever they stand; cut before a line is written. */
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
  // Redis errors carry the command that failed, with parameters and bodies.
  '*.command',
  '*.*.command',
  '*.*.*.command',
]

/**
 * Lines are written in batches, for a write per call costs a tenth of an API node's CPU. An orderly end and a fatal
 * error write what is left; a process that is killed loses this much time, milliseconds.
 */
const LINES_KEPT_MS = 100
const BATCH_BYTES = 4_096

/** The loggers of this process. */
const logs = new Set<Log>()

/** The logger of a process: JSON lines, or readable ones on a terminal. `process` names it: web, worker, probe, ops. */
export function createLog(config: Config['log'], process: string): Log {
  const options: LoggerOptions = {
    level: config.level,
    base: { process: config.process ?? process },
    redact: { paths: REDACTED, censor: '[redacted]' },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  }
  if (config.pretty) {
    const transport = { target: 'pino-pretty', options: { ignore: 'pid,hostname,process', singleLine: true } }
    return kept(pino({ ...options, transport }))
  }
  return kept(pino(options, pino.destination({ sync: false, minLength: BATCH_BYTES, periodicFlush: LINES_KEPT_MS })))
}

function kept(log: Log): Log {
  logs.add(log)
  return log
}

/**
 * Writes what is left of all logs. Call it before the process ends: what pino itself does at the end tries a broken pipe
 * for ever, unless it has met the broken pipe before.
 */
export async function flushLogs(): Promise<void> {
  // A line that cannot be written is lost; there is nowhere else to say so.
  await Promise.all([...logs].map((log) => new Promise<void>((resolve) => log.flush(() => resolve()))))
}

/**
 * The same log for lines of declared members alone, none of which can carry a secret: looking for one in each member of
 * each call's line takes a twentieth of an API node's CPU.
 */
export function plainLog(log: Log): Log {
  return log.child({}, { redact: [] })
}
