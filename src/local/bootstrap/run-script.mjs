import { spawn } from 'node:child_process'
import path from 'node:path'
import { onNpmGone } from './parent-watch.mjs'

/** Signals this close together are one request: a terminal and npm both deliver the same Ctrl-C. */
const SAME_SIGNAL_MS = 1000
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Runs the script on the given Node and ends this process the way the script ended: same code, same
 * signal.
 *
 * The script gets a session of its own: Ctrl-C reaches a terminal's whole process group, and npm
 * passes it on once more, so a script in our group would see it up to three times. This way it
 * hears of a stop from here alone, once. The IPC channel carries nothing: it closes when this
 * process is killed, which the script can notice ('disconnect').
 */
export async function runScript({ root, node, script, scriptArgs }) {
  const child = spawn(node, [path.resolve(root, script), ...scriptArgs], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    detached: process.platform !== 'win32',
    env: { ...compileCache(root), ...process.env, ...binariesFirst(root) },
  })
  let forwardedAt = Number.NEGATIVE_INFINITY
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (performance.now() - forwardedAt < SAME_SIGNAL_MS) return
      forwardedAt = performance.now()
      child.kill(signal)
    })
  }
  onNpmGone(() => {
    // A closed terminal ends npm with the signal that we have passed on; the script takes a second
    // signal for impatience.
    if (forwardedAt === Number.NEGATIVE_INFINITY) child.kill('SIGTERM')
  })
  const { code, signal, error } = await new Promise((resolve) => {
    child.once('error', (error) => resolve({ error }))
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  if (error) {
    console.error(`${script} could not be started with ${node}: ${error.message}`)
    return process.exit(1)
  }
  if (signal === null) return process.exit(code)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

/**
 * Compiled code is kept from one start to the next, beside what it was compiled from: a process
 * starts in half the time.
 */
function compileCache(root) {
  return { NODE_COMPILE_CACHE: path.join(root, 'node_modules', '.cache', 'node-compile') }
}

/** PATH with the project's own tools first; Windows may spell the variable another way. */
function binariesFirst(root) {
  const name = Object.keys(process.env).find((key) => key.toUpperCase() === 'PATH') ?? 'PATH'
  return { [name]: [path.join(root, 'node_modules', '.bin'), process.env[name]].filter(Boolean).join(path.delimiter) }
}
