import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../src/log.ts'

/** The pause before an answer is sent again, milliseconds: doubling from the first to the longest. */
const PAUSE_MS_MIN = 50
const PAUSE_MS_MAX = 1_000

/**
 * Sends an answer, and again until Redis takes it or the call's deadline is over: a failover, a Redis that loads or has
 * no memory left passes, and the upstream's answer is there. Sending twice does no harm.
 *
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

/** Whether an error is a mistake in our code rather than a failure of Redis or of a process. */
export function isMistake(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind)
}
