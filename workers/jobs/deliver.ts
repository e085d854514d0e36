import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../src/log.ts'

const PAUSE_MS_MIN = 50
const PAUSE_MS_MAX = 1_000

/**
 * Repeats until Redis takes the answer or the deadline passes: a failover ends, and the upstream's answer is there.
 * Delivering twice does no harm.
 * @throws what the last attempt threw
 */
export async function deliver(remainingMs: number, log: Log, send: () => Promise<void>): Promise<void> {
  const end = performance.now() + remainingMs
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    try {
      return await send()
    } catch (error) {
      if (isMistake(error) || performance.now() + pauseMs > end) throw error
      log.debug({ err: error }, 'failed to send the answer of a call; trying again')
      await delay(pauseMs)
    }
  }
}

/** A mistake in our code, rather than a failure of Redis or of a process. */
export function isMistake(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind)
}
