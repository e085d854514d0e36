import { flushCompileCache } from 'node:module'
import { within } from './async/within.ts'
import { type Config, ConfigError, loadProcessConfig, type ProcessKind } from './config.ts'
import { flushLogs, type Log } from './log.ts'
import { useNameServers } from './net/name-server.ts'
import { withClusterNodes } from './redis/server-info.ts'

/** A part of a process that runs until the process ends. */
export interface Running {
  log: Log
  /** Finishes the work in progress. */
  finish?: () => Promise<void>
  /** Closes connections, in the reverse order of opening. */
  close: () => Promise<void>
}

/**
 * The settings of a process, completed with facts from the network: every node of a Redis Cluster.
 *
 * @throws ConfigError that names the variable that is missing or cannot be used
 */
export async function loadSettings(kind: ProcessKind): Promise<Config> {
  const config = loadProcessConfig(kind)
  useNameServers(config.nameServers)
  return await withClusterNodes(config)
}

/** Longest time to finish work, milliseconds. Work that is not finished then is lost. */
const FINISH_MS_MAX = 22_000

/**
 * Longest time to close connections, milliseconds. No work is in progress then, and the system
 * closes what is left.
 */
const CLOSE_MS_MAX = 2_000

/**
 * Longest time to write the last log lines, milliseconds, because the reader of the log may have
 * stopped.
 */
const FLUSH_MS_MAX = 3_000

/**
 * Runs one process of the service: starts it, waits for SIGTERM or SIGINT, and ends it. A signal
 * also counts during the start. A second signal, or an uncaught failure, ends the process at once;
 * its supervisor starts another.
 */
export async function runProcess(name: string, start: () => Promise<Running>): Promise<void> {
  let running: Running | undefined
  let isEnding = false
  const end = async (signal: string): Promise<void> => {
    if (isEnding) return await exit(1)
    isEnding = true
    // No work was accepted yet.
    if (running === undefined) return await exit(0)
    await exit(await finish(running, signal))
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void end(signal))
  // The supervisor has ended, and nobody else would end this process.
  process.on('disconnect', () => void end('disconnect'))
  try {
    running = await start()
  } catch (error) {
    console.error(`${name}:`, error instanceof ConfigError ? error.message : error)
    return await exit(1)
  }
  const { log } = running
  // Written now, because a killed process would not write it at its end, and the next process needs
  // it. Does nothing without a compile cache.
  flushCompileCache()
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, event)
      void exit(1)
    })
  }
}

/** @returns the exit code */
async function finish({ log, finish: finishWork, close }: Running, signal: string): Promise<number> {
  log.info({ signal }, 'closing')
  try {
    if (finishWork && (await within(FINISH_MS_MAX, finishWork())) === 'late') {
      log.error('failed to finish running work in time')
      return 1
    }
    if ((await within(CLOSE_MS_MAX, close())) === 'late') log.warn('failed to close some connections in time')
    log.info('closed')
    return 0
  } catch (error) {
    log.error({ err: error }, 'failed to close')
    return 1
  }
}

async function exit(code: number): Promise<void> {
  process.exitCode = code
  // The process exits here in any case, because the log's exit handlers could wait for a reader for
  // ever.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), FLUSH_MS_MAX)
  await flushLogs()
  process.exit(code)
}
