import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** Starts a file of this folder as a process and waits for its first message. */
export async function startChild(file: string, options: object): Promise<{ child: ChildProcess; message: unknown }> {
  const child = fork(new URL(file, import.meta.url), [JSON.stringify(options)], { execArgv: [] })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${file} ended with ${code}`)
  })
  const [message] = await Promise.race([once(child, 'message', { signal: AbortSignal.timeout(20_000) }), ended])
  ended.catch(() => undefined)
  return { child, message }
}

/** Starts a process that listens, and waits for its first message, which has its port. */
export async function startServer(file: string, options: object): Promise<{ child: ChildProcess; url: string }> {
  const { child, message } = await startChild(file, options)
  return { child, url: `http://127.0.0.1:${(message as { listening: number }).listening}` }
}
