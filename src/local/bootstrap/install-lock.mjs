import { spawnSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const BEAT_MS = 1000
/**
 * If an owner runs on another machine or in another container, its pid says nothing. Without a sign
 * of life for so long, such an owner counts as dead. Milliseconds.
 */
const SILENCE_MS = 30_000

/**
 * Takes the lock of `root`. It waits for a living owner, and takes over from a dead owner, whose
 * npm it ends if npm still runs. Returns `noteNpm(pid)`, to be called with the npm that runs under
 * the lock, and `release()`.
 *
 * The lock is a directory. The file `owner` names the process that made it. The file
 * `after-<owner>` names the process that took over from this dead owner, and so on; the last
 * process of this chain holds the lock. Each file appears complete and only once (`link`), so two
 * processes can never take over from the same owner. If a dead owner's lock were simply deleted and
 * made again, the slower of two processes could delete the lock of the faster.
 */
export async function takeLock(root, { onWait, waitMs }) {
  const dir = path.join(root, '.install-lock')
  const me = { id: `${process.pid}-${Date.now().toString(36)}`, pid: process.pid, host: hostname() }
  const deadline = Date.now() + waitMs
  const watch = { beat: undefined, since: Date.now() }
  for (let waited = false; ; ) {
    const holder = existsSync(dir) ? takeOver(dir, me, watch) : makeLock(dir, me)
    if (holder === me) {
      await endOrphans(dir, deadline)
      return keepLock(dir, me)
    }
    if (Date.now() > deadline)
      throw new Error(`another start has been installing for too long; if none is, delete ${dir}`)
    if (!waited && holder) {
      waited = true
      onWait(holder)
    }
    await sleep(100)
  }
}

function makeLock(dir, me) {
  const draft = `${dir}-${me.id}`
  mkdirSync(draft)
  writeFileSync(path.join(draft, 'owner'), JSON.stringify(me))
  try {
    renameSync(draft, dir) // fails while the lock exists, because it is never an empty directory
    return me
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(error.code)) throw error
    return undefined
  }
}

/**
 * Takes over from a dead owner. Returns the present holder of the lock, or undefined if it has just
 * changed.
 */
function takeOver(dir, me, watch) {
  try {
    const holder = readHolder(dir)
    if (!holder || isAlive(holder, dir, watch)) return holder
    const draft = path.join(dir, `heir-${me.id}`)
    const link = path.join(dir, `after-${holder.id}`)
    writeFileSync(draft, JSON.stringify(me))
    try {
      linkSync(draft, link)
    } finally {
      rmSync(draft, { force: true }) // a second name of the link: what is written to it later would be written to both
    }
    if (readHolder(dir)?.id === me.id) return me
    rmSync(link, { force: true }) // freed and made anew by another since we looked: its chain does not lead to us
    return undefined
  } catch (error) {
    if (!['ENOENT', 'EEXIST'].includes(error.code)) throw error
    return undefined // freed or taken by another in this moment: look again
  }
}

/** Follows the chain to its last process. */
function readHolder(dir) {
  let holder = readOwner(path.join(dir, 'owner'))
  for (let next = holder; next; next = readOwner(path.join(dir, `after-${holder.id}`))) holder = next
  return holder
}

function isAlive(holder, dir, watch) {
  const beat = statSync(dir).mtimeMs
  if (beat !== watch.beat) Object.assign(watch, { beat, since: Date.now() })
  if (Date.now() - watch.since > SILENCE_MS) return false
  if (holder.host !== hostname()) return true
  if (holder.pid === process.pid) return false // our own pid in an old lock: numbers start again in a container
  try {
    process.kill(holder.pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/**
 * Ends npm processes of dead starts. If a start is killed, its npm continues, and two npms in one
 * directory would break it.
 */
async function endOrphans(dir, deadline) {
  for (const name of readdirSync(dir).filter((name) => name.startsWith('npm-of-'))) {
    const { pid, host } = JSON.parse(readFileSync(path.join(dir, name), 'utf8'))
    if (host !== hostname() || !commandLine(pid).includes('npm')) continue
    try {
      process.kill(-pid, 'SIGKILL')
    } catch (error) {
      if (error.code !== 'ESRCH') throw error
    }
    while (commandLine(pid).includes('npm') && Date.now() < deadline) await sleep(20)
  }
}

/** The command line of a process; empty if it does not exist or has exited. */
function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return spawnSync('ps', ['-p', String(pid), '-o', 'command='], { encoding: 'utf8' }).stdout ?? ''
  }
}

function keepLock(dir, me) {
  const beat = setInterval(() => ignoreAbsent(() => utimesSync(dir, new Date(), new Date())), BEAT_MS)
  beat.unref()
  const noteNpm = (pid) => {
    const draft = path.join(dir, `npm-draft-${me.id}`)
    writeFileSync(draft, JSON.stringify({ pid, host: me.host }))
    renameSync(draft, path.join(dir, `npm-of-${me.id}`))
  }
  const release = () => {
    clearInterval(beat)
    // Moved away first, because deleting one file after the other would show other starts a chain
    // without its end.
    const freed = `${dir}-freed-${me.id}`
    ignoreAbsent(() => renameSync(dir, freed))
    rmSync(freed, { recursive: true, force: true, maxRetries: 3 }) // another start may have been writing its draft
  }
  return { noteNpm, release }
}

/** Somebody may have deleted the lock by hand, as our own message suggests. */
function ignoreAbsent(action) {
  try {
    action()
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
}

function readOwner(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    return undefined
  }
}
