import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../src/log.ts'

const PAUSE_MS_MIN = 50
const PAUSE_MS_MAX = 1_000

/**
 * Sends a reply until Redis takes it or the deadline passes: an answer that the upstream gave
 * outlasts a failover. A second reply does no harm.
 * @throws what the last try threw
 */
export async function deliver(remainingMs: number, log: Log, send: () => Promise<void>): Promise<void> {
  const end = performance.now() + remainingMs
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    try {
      return await send()
    } catch (error) {
      if (isProgrammingError(error) || performance.now() + pauseMs > end) throw error
      log.debug({ err: error }, 'failed to send the answer of a call; trying again')
      await delay(pauseMs)
    }
  }
}

/** Rather than a failure of Redis or of a process. */
export function isProgrammingError(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind)
}
