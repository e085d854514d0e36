import { readFileSync } from 'node:fs'

const LOOK_EVERY_MS = 500
const SHELLS = ['sh', 'ash', 'dash', 'bash', 'busybox', 'zsh', 'ksh']

/**
 * Calls back when the npm that runs this process has ended, because npm does not forward SIGTERM to
 * what it runs, directly or through a shell. If npm did not start this process, nothing is watched,
 * so that the process may outlive its starter.
 */
export function onNpmGone(callback) {
  if (process.env.npm_lifecycle_event === undefined) return
  const npm = npmAbove()
  const timer = setInterval(() => {
    if (npmAbove() === npm) return
    clearInterval(timer)
    callback()
  }, LOOK_EVERY_MS)
  timer.unref()
}

/** The pid of the parent process. If the parent is a shell, the pid of its own parent too. */
function npmAbove() {
  const stat = readStat(process.ppid)
  return stat !== undefined && SHELLS.includes(stat.name) ? `${process.ppid} ${stat.parent}` : String(process.ppid)
}

/** Undefined without /proc. */
function readStat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may contain anything, so fields are counted after it.
    const end = text.lastIndexOf(')')
    return { name: text.slice(text.indexOf('(') + 1, end), parent: text.slice(end + 2).split(' ')[1] }
  } catch {
    return undefined
  }
}
