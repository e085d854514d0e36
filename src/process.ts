import { flushCompileCache } from 'node:module'
import { within } from './async/within.ts'
import { type Config, ConfigError, loadProcessConfig, type ProcessKind } from './config.ts'
import { flushLogs, type Log } from './log.ts'
import { useNameServers } from './net/name-server.ts'
import { withClusterNodes } from './redis/server-info.ts'

/** Something that runs until the process ends. */
export interface Running {
  log: Log
  /** Finishes what is under way. */
  finish?: () => Promise<void>
  /** Closes connections, in the reverse order of opening. */
  close: () => Promise<void>
}

/**
 * The settings of a process, with what only the network knows: every node of a Redis Cluster.
 *
 * @throws ConfigError naming the variable that is missing or cannot be used
 */
export async function loadSettings(kind: ProcessKind): Promise<Config> {
  const config = loadProcessConfig(kind)
  useNameServers(config.nameServers)
  return await withClusterNodes(config)
}

/** Longest that finishing may take, milliseconds; what is still under way then is lost. */
const FINISH_MS_MAX = 22_000

/**
 * Longest that closing may take, milliseconds: nothing is under way any more, and the system closes
 * what is left.
 */
const CLOSE_MS_MAX = 2_000

/**
 * Longest that writing the last log lines may take, milliseconds: whoever reads them may have
 * stopped.
 */
const FLUSH_MS_MAX = 3_000

/**
 * Runs one process of the service: starts it, waits for SIGTERM or SIGINT, ends it. A signal counts
 * while it starts too. A second signal, or a failure nobody caught, ends it at once; its supervisor
 * starts another.
 */
export async function runProcess(name: string, start: () => Promise<Running>): Promise<void> {
  let running: Running | undefined
  let isEnding = false
  const end = async (signal: string): Promise<void> => {
    if (isEnding) return await exit(1)
    isEnding = true
    // Nothing was accepted yet.
    if (running === undefined) return await exit(0)
    await exit(await finish(running, signal))
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void end(signal))
  // The supervisor is gone: nobody else would end this process.
  process.on('disconnect', () => void end('disconnect'))
  try {
    running = await start()
  } catch (error) {
    console.error(`${name}:`, error instanceof ConfigError ? error.message : error)
    return await exit(1)
  }
  const { log } = running
  // Written now, not at the end: a process that is killed leaves it to the next process too. Does
  // nothing without a cache.
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
  // No exit code is worth a process that never ends: the exit handlers of the log would wait for a
  // reader.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), FLUSH_MS_MAX)
  await flushLogs()
  process.exit(code)
}
