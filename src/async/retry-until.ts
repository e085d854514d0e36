import { setTimeout as delay } from 'node:timers/promises'

export interface RetryUntilOptions {
  /** Whether doing it again does no harm after this error. */
  mayRepeat: (error: unknown) => boolean
  /** Pause between two tries, milliseconds. */
  everyMs: number
  /** How long it is tried, milliseconds from now. */
  forMs: number
}

/** For what a Redis that is started again, or fails over, must take in the end. */
export const RESTART_RETRY = { everyMs: 250, forMs: 30_000 }

/**
 * Repeats work that failed for a while, if it may be repeated.
 * @throws the last error
 */
export async function retryUntil<T>(
  run: () => Promise<T>,
  { mayRepeat, everyMs, forMs }: RetryUntilOptions,
): Promise<T> {
  for (const endsAt = performance.now() + forMs; ; ) {
    try {
      return await run()
    } catch (error) {
      if (performance.now() >= endsAt || !mayRepeat(error)) throw error
      await delay(everyMs)
    }
  }
}
