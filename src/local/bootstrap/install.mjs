import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { takeLock } from './install-lock.mjs'
import {
  doesPinnedNodeRun,
  installedNode,
  isListComplete,
  isNode,
  isOwnNodeEnough,
  leftOut,
  loadWanted,
  missingPackages,
  pinnedNodeFile,
  writeStamp,
} from './install-state.mjs'
import { runNpm } from './npm.mjs'

const LOCK_WAIT_MS = 15 * 60_000

/**
 * Makes `node_modules` match the lock file if necessary, and returns the Node to run with. Ends the
 * process on failure.
 */
export async function ensureInstalled(root) {
  // A container image has its packages and its Node, and no lock file.
  if (!existsSync(path.join(root, 'package-lock.json'))) return process.execPath
  const wanted = loadWanted(root)
  const ready = installedNode(root, wanted)
  if (ready) {
    sayLeftOut(root, wanted, { missing: leftOut(root, wanted), isPinnedUsed: ready !== process.execPath })
    return ready
  }
  try {
    accessSync(root, constants.W_OK)
  } catch {
    // A read-only copy can be neither locked nor installed, but it may have been installed before
    // it became read-only.
    if (isListComplete(root, wanted) && doesPinnedNodeRun(root, wanted)) return pinnedNodeFile(root)
    return fail(`Dependencies are missing and cannot be installed, because this account may not write to ${root}.`)
  }
  return installLocked(root, wanted)
}

async function installLocked(root, wanted) {
  let lock
  try {
    lock = await takeLock(root, {
      waitMs: LOCK_WAIT_MS,
      onWait: ({ pid }) => console.error(`Another start (process ${pid}) is installing dependencies; waiting for it …`),
    })
    return installedNode(root, wanted) ?? (await install(root, wanted, lock.noteNpm))
  } catch (error) {
    lock?.release()
    lock = undefined
    return fail(error.message, error.signal)
  } finally {
    lock?.release()
  }
}

async function install(root, wanted, onStart) {
  if (!isListComplete(root, wanted)) {
    const again = leftOut(root, wanted)
    // `npm ci` would first delete the packages that work.
    const command = again.length > 0 ? ['install', '--no-save'] : ['ci']
    const title =
      again.length > 0
        ? `Trying again to install ${again.join(', ')} (npm install)`
        : 'Installing dependencies (npm ci), about a minute on the first run'
    // Development packages are always installed, because `npm test` needs them and one state of
    // node_modules is simpler than two.
    const everything = ['--include=dev', '--include=optional', '--ignore-scripts']
    await runNpm(root, [...command, ...everything], { title, onStart })
  }
  await runAllowedScripts(root, wanted, onStart)
  const isPinnedUsed = doesPinnedNodeRun(root, wanted)
  const missing = missingPackages(root, wanted)
  if (!isPinnedUsed && !missing.some(isNode)) goOnWithOwnNode(root, wanted)
  sayLeftOut(root, wanted, { missing, isPinnedUsed })
  writeStamp(root, wanted, { node: isPinnedUsed ? 'pinned' : 'own', missing })
  return isPinnedUsed ? pinnedNodeFile(root) : process.execPath
}

/**
 * Runs the install scripts that package.json allows, whatever npm's settings are. The scripts of
 * other packages build things that the gateway does not need. If somebody else ran npm, the scripts
 * are run too, because it is unknown whether npm ran them.
 */
async function runAllowedScripts(root, { scriptsAllowed }, onStart) {
  const names = installedNames(root, scriptsAllowed)
  if (names.length === 0) return
  const title = `Running the install scripts of ${names.join(', ')} (npm rebuild)`
  await runNpm(root, ['rebuild', ...names, '--ignore-scripts=false'], { title, onStart })
}

/**
 * Prints which packages npm left out.
 *
 * @throws Error if the pinned Node was left out and the running Node cannot replace it
 */
function sayLeftOut(root, wanted, { missing, isPinnedUsed }) {
  if (!isPinnedUsed && missing.some(isNode)) goOnWithOwnNode(root, wanted)
  const unexplained = missing.filter((name) => isPinnedUsed || !isNode(name))
  if (unexplained.length === 0) return
  console.error(
    `npm did not install ${unexplained.join(', ')}: it leaves out an optional package that it fails to fetch or build. Going on without; a start tries again after a day, and \`npm ci\` at once.`,
  )
}

/**
 * Prints why the pinned Node is not used.
 *
 * @throws Error if the running Node is too old to replace it
 */
function goOnWithOwnNode(root, wanted) {
  const platform = `${process.platform} ${process.arch}`
  const problem = existsSync(pinnedNodeFile(root))
    ? `does not run on this machine (${platform})`
    : `was not installed: the npm registry was not reached, or it has no Node binary for ${platform}`
  const sentence = `Node ${wanted.nodeVersion ?? ''}, which package-lock.json pins, ${problem}.`
  if (!isOwnNodeEnough(wanted)) {
    throw new Error(`${sentence} Start again, or run the command with a Node of that version or newer.`)
  }
  console.error(`${sentence} Going on with Node ${process.versions.node}.`)
}

/** The packages of a list that are installed. Binaries for other platforms are not. */
function installedNames(root, names) {
  const modules = path.join(root, 'node_modules')
  const present = new Set(readdirSync(modules))
  for (const scope of [...present].filter((name) => name.startsWith('@'))) {
    for (const name of readdirSync(path.join(modules, scope))) present.add(`${scope}/${name}`)
  }
  return names.filter((name) => present.has(name))
}

function fail(message, signal) {
  console.error(message)
  if (signal) process.kill(process.pid, signal)
  return process.exit(1)
}
