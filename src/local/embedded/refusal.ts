import type { ReadStream } from 'node:tty'

const SECONDS = 10

/** Ctrl-C, which a terminal in raw mode delivers as a character. */
const INTERRUPT = '\u0003'

/**
 * Gives the person at the terminal ten seconds to press a key, which means no. Without a terminal
 * it does not wait, and the setting decides.
 */
export async function isRefused(
  print: (text: string) => void,
  { input = process.stdin, waitMs = SECONDS * 1_000 }: { input?: ReadStream; waitMs?: number } = {},
): Promise<boolean> {
  if (!input.isTTY) return false
  print(`Press any key within ${waitMs / 1_000} seconds to decline.`)
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const timer = setTimeout(() => resolve(undefined), waitMs)
  const onData = (data: Buffer) => resolve(String(data))
  input.setRawMode(true)
  input.on('data', onData).resume()
  const key = await promise
  clearTimeout(timer)
  input.off('data', onData).pause()
  input.setRawMode(false)
  if (key === INTERRUPT) process.kill(process.pid, 'SIGINT')
  return key !== undefined
}
