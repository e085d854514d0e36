import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRunning } from './process-identity.ts'
import { lastLines } from './run-command.ts'

const POLL_MS = 20

/** How to start a server: `input` goes to its standard input, `logFile` receives its output. */
export type ServerCommand = {
  command: string
  commandArgs: string[]
  logFile: string
  cwd?: string
  input?: string
  argv0?: string
  uid?: number
  gid?: number
  /** Signal for the server if this process ends without stopping it. */
  exitSignal?: NodeJS.Signals
}

export type ServerProcess = {
  pid: number
  /** Resolves when the process has ended. */
  ended: Promise<void>
  hasEnded(): boolean
  kill(signal: NodeJS.Signals): void
  lastLog(): string
}

/** The servers that run, and how each of them ends if this process ends before it. */
const running = new Map<ChildProcess, NodeJS.Signals>()

function endRunning(): void {
  for (const [child, signal] of running) child.kill(signal)
}

/**
 * Starts a server in its own session, so that Ctrl-C does not reach it while the service still
 * needs it. Its log is a file and not a pipe, so that it continues if this process is killed. If
 * this process ends without stopping the server, a watcher stops it.
 */
export async function spawnServer({
  command,
  commandArgs,
  logFile,
  input,
  exitSignal = 'SIGTERM',
  ...options
}: ServerCommand): Promise<ServerProcess> {
  const log = openSync(logFile, 'w', 0o600)
  const child = spawn(command, commandArgs, { ...options, detached: true, stdio: ['pipe', log, log] })
  closeSync(log)
  child.stdin?.on('error', () => undefined) // it ended before reading; its log says why
  child.stdin?.end(input ?? '')
  let failure = ''
  const lastLog = () => lastLines(failure + readFileSync(logFile, 'utf8'))
  if (running.size === 0) process.once('exit', endRunning)
  running.set(child, exitSignal)
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', (error) => {
      failure = `${error.message}\n`
      resolve()
    })
  })
  ended.then(() => {
    running.delete(child)
    if (running.size === 0) process.removeListener('exit', endRunning)
  })
  if (child.pid === undefined) {
    await ended
    throw new Error(`${command} could not be started: ${failure.trim()}`)
  }
  return {
    pid: child.pid,
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    kill: (signal) => void child.kill(signal),
    lastLog,
  }
}

/**
 * Polls until the answer is not undefined. Returns undefined if the time has passed, or if `isOver`
 * says that no answer will come.
 */
export async function waitFor<T>(
  check: () => T | undefined | Promise<T | undefined>,
  { timeoutMs, isOver }: { timeoutMs: number; isOver?: () => boolean },
): Promise<T | undefined> {
  const deadline = performance.now() + timeoutMs
  while (performance.now() < deadline) {
    const answer = await check()
    if (answer !== undefined) return answer
    if (isOver?.()) return undefined
    await sleep(POLL_MS)
  }
  return undefined
}

/** Sends one signal after the other until the process has ended. Returns whether it ended. */
export async function stopProcess(pid: number, steps: { signal: NodeJS.Signals; waitMs: number }[]): Promise<boolean> {
  for (const { signal, waitMs } of steps) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true
      throw error
    }
    if (await waitFor(() => (isRunning(pid) ? undefined : true), { timeoutMs: waitMs })) return true
  }
  return false
}
