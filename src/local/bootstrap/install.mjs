import { accessSync, constants, existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { takeLock } from './install-lock.mjs'
import {
  doesPinnedNodeRun,
  installedNode,
  isListComplete,
  isOwnNodeEnough,
  linkLockedNode,
  loadWanted,
  pinnedNodeFile,
  writeStamp,
} from './install-state.mjs'
import { runNpm } from './npm.mjs'

const LOCK_WAIT_MS = 15 * 60_000

/** Makes `node_modules` what the lock file says, when it is not, and gives the Node to run with. Ends the process on failure. */
export async function ensureInstalled(root) {
  const wanted = loadWanted(root)
  const ready = installedNode(root, wanted)
  if (ready) return ready
  try {
    accessSync(root, constants.W_OK)
  } catch {
    // A read-only copy cannot be locked or installed, but may have been installed before it became one.
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
    // Development packages always: `npm test` needs them, and one state of node_modules is simpler than two.
    await runNpm(root, ['ci', '--include=dev', '--include=optional'], {
      title: 'Installing dependencies (npm ci), about a minute on the first run',
      onStart,
    })
  }
  linkLockedNode(root)
  if (!doesPinnedNodeRun(root, wanted)) {
    const names = installedNames(root, wanted.scriptsAllowed)
    if (names.length > 0) {
      await runNpm(root, ['rebuild', ...names, '--ignore-scripts=false'], {
        title: `npm skipped install scripts, as with ignore-scripts=true; running those that are needed (${names.join(', ')})`,
        onStart,
      }).catch((error) => {
        if (error.signal || !isOwnNodeEnough(wanted)) throw error
      })
    }
  }
  if (doesPinnedNodeRun(root, wanted)) {
    writeStamp(root, wanted, 'pinned')
    return pinnedNodeFile(root)
  }
  if (!isOwnNodeEnough(wanted)) {
    const wantedNode = `Node ${wanted.nodeVersion ?? ''}, which package-lock.json pins,`
    throw new Error(
      existsSync(pinnedNodeFile(root))
        ? `${wantedNode} does not run on this machine (${process.platform} ${process.arch}); run the command with a Node of that version or newer.`
        : `${wantedNode} was not installed: npm leaves out an optional package that it cannot fetch. Start again when the npm registry can be reached, or run the command with a Node of that version or newer.`,
    )
  }
  console.error(
    `The pinned Node ${wanted.nodeVersion} does not run on this machine; going on with Node ${process.versions.node}.`,
  )
  writeStamp(root, wanted, 'own')
  return process.execPath
}

/** Of these packages, those that are here: the binaries of other platforms are not. */
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
