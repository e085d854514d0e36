import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'

/** The share of the machine's memory that Redis may fill, and the least it gets, bytes. */
const SHARE = 0.25
const BYTES_MIN = 128 * 1024 * 1024

/** The file in which a container says how much memory it has (cgroup 2). */
const CGROUP_FILE = '/sys/fs/cgroup/memory.max'

/**
 * How much the embedded Redis may hold, bytes: past it writes are refused and callers get 503,
 * while without a bound the kernel would end a process of its choice.
 */
export function redisMemoryBytes(): number {
  return Math.max(BYTES_MIN, Math.floor(SHARE * Math.min(totalmem(), containerBytes())))
}

function containerBytes(): number {
  try {
    const bytes = Number(readFileSync(CGROUP_FILE, 'utf8'))
    return Number.isFinite(bytes) ? bytes : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY // no container, or not Linux
  }
}
