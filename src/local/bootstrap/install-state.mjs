import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/**
 * The inputs of an install and their hash. The hash changes with everything that could change
 * `node_modules`, and with nothing else: editing a script or raising our version does not install
 * again.
 */
export function loadWanted(root) {
  const manifest = readJson(path.join(root, 'package.json'))
  const lockText = readFileSync(path.join(root, 'package-lock.json'), 'utf8')
  const { dependencies, devDependencies, optionalDependencies, overrides, allowScripts } = manifest
  const parts = [dependencies, devDependencies, optionalDependencies, overrides, allowScripts]
  const hash = createHash('sha256')
    .update(JSON.stringify([lockText, parts, process.platform, process.arch]))
    .digest('hex')
  const lock = JSON.parse(lockText)
  return {
    hash,
    packages: lock.packages,
    nodeVersion: Object.entries(lock.packages).find(([place]) => isNode(place))?.[1].version,
    scriptsAllowed: Object.keys(allowScripts ?? {}).filter((name) => allowScripts[name] === true),
  }
}

/**
 * Whether this is a package of the pinned Node. Each platform has its own package, and npm installs
 * the package of this platform.
 */
export const isNode = (nameOrPlace) => /^(node_modules\/)?node-(linux|win|darwin)-\w+$/.test(nameOrPlace)

/**
 * After npm left out an optional package, how long until the next try to install it, milliseconds.
 */
const TRY_AGAIN_MS = 24 * 3_600_000

/**
 * The Node to run with, if exactly this install is finished; otherwise undefined. Reads three small
 * files.
 */
export function installedNode(root, wanted) {
  const stamp = readStamp(root, wanted)
  if (!stamp || isTryDue(stamp)) return undefined
  if (stamp.node === 'own') return isOwnNodeEnough(wanted) ? process.execPath : undefined
  return isFile(pinnedNodeFile(root)) ? pinnedNodeFile(root) : undefined
}

/** Packages that npm left out of a finished install. */
export function leftOut(root, wanted) {
  return readStamp(root, wanted)?.missing ?? []
}

/**
 * Records a finished install. `node` is 'pinned', or 'own' if the pinned Node does not run on this
 * machine.
 */
export function writeStamp(root, wanted, { node, missing }) {
  const stamp = {
    hash: wanted.hash,
    listedAt: listedAt(root),
    node,
    ...(missing.length > 0 && { missing, triedAt: Date.now() }),
  }
  try {
    writeFileSync(stampFile(root), `${JSON.stringify(stamp)}\n`)
  } catch (error) {
    // A read-only installation works too. It is only checked again at the next start.
    if (!['EROFS', 'EACCES', 'EPERM'].includes(error.code)) throw error
  }
}

/** The recorded install; undefined if the inputs have changed, or npm has run since. */
function readStamp(root, wanted) {
  const stamp = readJson(stampFile(root))
  return stamp?.hash === wanted.hash && stamp.listedAt === listedAt(root) ? stamp : undefined
}

/** Whether the next try is due. It is also due if the clock was set back. */
function isTryDue({ missing = [], triedAt }) {
  return missing.length > 0 && Math.abs(Date.now() - triedAt) >= TRY_AGAIN_MS
}

/** Whether npm's own list has every required package of the lock file. */
export function isListComplete(root, wanted) {
  return isFile(listFile(root)) && missingPackages(root, wanted).length === 0
}

/**
 * The packages of the lock file that npm's own list lacks. Optional packages of other platforms may
 * be absent. Optional packages that package.json names for all platforms may not, although
 * `npm ci --omit=optional` leaves them out, and so does `npm ci` if it cannot fetch or build them.
 */
export function missingPackages(root, wanted) {
  const listed = readJson(listFile(root))?.packages ?? {}
  const named = Object.keys(wanted.packages['']?.optionalDependencies ?? {})
  const isOfAnother = ({ os, cpu }) => (os && !os.includes(process.platform)) || (cpu && !cpu.includes(process.arch))
  const mayMiss = (place, locked) =>
    locked.optional && (isOfAnother(locked) || !named.includes(place.slice('node_modules/'.length)))
  return Object.entries(wanted.packages)
    .filter(([place, locked]) => place.startsWith('node_modules/') && !mayMiss(place, locked))
    .filter(([place, locked]) => !listed[place] || listed[place].version !== locked.version)
    .map(([place]) => place.slice('node_modules/'.length))
}

/** Whether the pinned Node is installed and runs. No build of it runs on musl. */
export function doesPinnedNodeRun(root, wanted) {
  const { stdout } = spawnSync(pinnedNodeFile(root), ['--version'], { encoding: 'utf8', timeout: 20_000 })
  if (!stdout?.startsWith('v')) return false
  return wanted.nodeVersion === undefined || stdout.trim() === `v${wanted.nodeVersion}`
}

/** Whether the running Node may replace the pinned Node. */
export function isOwnNodeEnough(wanted) {
  return wanted.nodeVersion !== undefined && major(process.versions.node) >= major(wanted.nodeVersion)
}

export function pinnedNodeFile(root) {
  return process.platform === 'win32'
    ? path.join(root, 'node_modules', `node-win-${process.arch}`, 'bin', 'node.exe')
    : path.join(root, 'node_modules', '.bin', 'node')
}

const stampFile = (root) => path.join(root, 'node_modules', '.installed')
const listFile = (root) => path.join(root, 'node_modules', '.package-lock.json')
const major = (version) => Number(version.split('.')[0])

/**
 * When npm last wrote its list. npm writes it at the end of every run, so another time means that
 * somebody ran npm by hand.
 */
function listedAt(root) {
  return statSync(listFile(root), { throwIfNoEntry: false })?.mtimeMs
}

function isFile(file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined // absent or half-written: the same as never installed
  }
}
