import { setTimeout as delay } from 'node:timers/promises'

export interface RetryUntilOptions {
  /** Whether doing it again does no harm after this error. */
  mayRepeat: (error: unknown) => boolean
  /** Pause between two tries, milliseconds. */
  everyMs: number
  /** How long it is tried, milliseconds from now. */
  forMs: number
}

/** Repeats what failed for a while, where that may be done. @throws the last error */
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
