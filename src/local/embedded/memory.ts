import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'

/** The share of the machine's memory that Redis may use, and the least amount, bytes. */
const SHARE = 0.25
const BYTES_MIN = 128 * 1024 * 1024

/** The file in which a container finds its memory limit (cgroup 2). */
const CGROUP_FILE = '/sys/fs/cgroup/memory.max'

/**
 * Memory limit of the embedded Redis, bytes. Above it Redis refuses writes and callers get 503.
 * Without a limit, the kernel would kill a process of its choice.
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
