import { readFileSync } from 'node:fs'

const LOOK_EVERY_MS = 500
const SHELLS = ['sh', 'ash', 'dash', 'bash', 'busybox', 'zsh', 'ksh']

/**
 * Calls back when the npm that runs this process has gone: npm does not pass SIGTERM on to what it
 * runs, directly or through a shell. Does nothing if no npm started this process; whoever starts it
 * then may leave it running.
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

/** The number of the process above this process, or above the shell between. */
function npmAbove() {
  const stat = readStat(process.ppid)
  return stat !== undefined && SHELLS.includes(stat.name) ? `${process.ppid} ${stat.parent}` : String(process.ppid)
}

/** Undefined if there is no /proc. */
function readStat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may hold anything; fields are counted from behind it.
    const end = text.lastIndexOf(')')
    return { name: text.slice(text.indexOf('(') + 1, end), parent: text.slice(end + 2).split(' ')[1] }
  } catch {
    return undefined
  }
}
