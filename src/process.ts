import { flushCompileCache } from 'node:module'
import { ConfigError } from './config.ts'
import type { Log } from './log.ts'

/** Something that runs until the process is told to end. */
export interface Running {
  log: Log
  /** Finishes what is under way and closes everything. */
  close: () => Promise<void>
}

/** Longest an orderly end may take, milliseconds. */
const CLOSE_MS_MAX = 25_000

/**
 * Runs one process of the service: starts it, waits for SIGTERM or SIGINT, closes it. A second signal, or a failure
 * nobody caught, ends it at once; its supervisor starts another.
 */
export async function runProcess(name: string, start: () => Promise<Running>): Promise<void> {
  let running: Running
  try {
    running = await start()
  } catch (error) {
    const words = error instanceof ConfigError ? error.message : error
    console.error(`${name}:`, words)
    process.exit(1)
  }
  const { log } = running
  // Written now, not at the end: a process that is killed leaves it to the next one too. Does nothing without a cache.
  flushCompileCache()
  let isClosing = false
  const end = async (signal: string): Promise<void> => {
    if (isClosing) process.exit(1)
    isClosing = true
    log.info({ signal }, 'closing')
    setTimeout(() => process.exit(1), CLOSE_MS_MAX).unref()
    try {
      await running.close()
      log.info('closed')
      process.exit(0)
    } catch (error) {
      log.error({ err: error }, 'closing failed')
      process.exit(1)
    }
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void end(signal))
  // The supervisor is gone: nobody else would end this process.
  process.on('disconnect', () => void end('disconnect'))
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, event)
      process.exitCode = 1
      log.flush(() => process.exit(1))
    })
  }
}
