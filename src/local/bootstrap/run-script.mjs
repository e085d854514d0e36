import { spawn } from 'node:child_process'
import path from 'node:path'
import { onNpmGone } from './parent-watch.mjs'

/**
 * Signals this close together count as one, because a terminal and npm both deliver the same
 * Ctrl-C. Milliseconds.
 */
const SAME_SIGNAL_MS = 1000
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Runs the script with the given Node, and ends this process as the script ended: with the same
 * code or the same signal.
 *
 * The script gets its own session. A Ctrl-C reaches the whole process group of a terminal, and npm
 * forwards it again, so a script in our group would receive it up to three times. In its own
 * session the script receives a stop only from here, once. The IPC channel carries no messages. It
 * closes when this process is killed, which the script notices ('disconnect').
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
    // If the terminal was closed, npm ends with the signal that we have already forwarded. The
    // script would take a second signal as a demand to stop at once.
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

/** The folder for compiled code, beside the sources. With it, a process starts in half the time. */
function compileCache(root) {
  return { NODE_COMPILE_CACHE: path.join(root, 'node_modules', '.cache', 'node-compile') }
}

/** PATH with the project's own tools first. On Windows the variable may have another spelling. */
function binariesFirst(root) {
  const name = Object.keys(process.env).find((key) => key.toUpperCase() === 'PATH') ?? 'PATH'
  return { [name]: [path.join(root, 'node_modules', '.bin'), process.env[name]].filter(Boolean).join(path.delimiter) }
}
