import { readFileSync, readlinkSync } from 'node:fs'
import { runCommand } from './run-command.ts'

/** Distinguishes a process from a later process with the same pid. */
export type ProcessIdentity = { pid: number; startedAt: string }

const PS_MS = 5000

/** The identity of a running process; undefined if no process has this pid. */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  if (!isRunning(pid)) return undefined
  const startedAt = readStat(pid)?.startedAt ?? (await runPs(pid, 'lstart='))
  return startedAt === undefined ? undefined : { pid, startedAt }
}

export async function isSameProcessRunning({ pid, startedAt }: ProcessIdentity): Promise<boolean> {
  return (await identifyProcess(pid))?.startedAt === startedAt
}

/** Whether the process works in this directory or names it on its command line. */
export async function isProcessOf(pid: number, dir: string): Promise<boolean> {
  if (!isRunning(pid)) return false
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === dir
  } catch {
    // No /proc (macOS), or another account's process: the command line is open to all.
  }
  return (readCommandLine(pid) ?? (await runPs(pid, 'command=')))?.includes(dir) ?? false
}

/**
 * Whether a process has this pid. A process that has exited but was not reaped by its parent does
 * not count.
 */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  return readStat(pid)?.state !== 'Z'
}

function readStat(pid: number): { state: string; startedAt: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may contain anything, so fields are counted after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return { state: fields[0] ?? '', startedAt: `${boot}/${fields[19]}` }
  } catch {
    return undefined
  }
}

function readCommandLine(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return undefined
  }
}

async function runPs(pid: number, column: string): Promise<string | undefined> {
  const { code, output } = await runCommand('ps', ['-p', String(pid), '-o', column], { timeoutMs: PS_MS })
  return code === 0 ? output.trim() : undefined
}
