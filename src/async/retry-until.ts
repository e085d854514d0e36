import { setTimeout as delay } from 'node:timers/promises'

interface RetryUntilOptions {
  /** Whether repeating the work does no harm after this error. Default: it never does harm. */
  mayRepeat?: (error: unknown) => boolean
  /** Pause between two tries, milliseconds. */
  everyMs: number
  /** How long to try, milliseconds from now. */
  forMs: number
}

/** For writes that must succeed in the end, although Redis is restarting or failing over. */
export const RESTART_RETRY = { everyMs: 250, forMs: 30_000 }

/**
 * Repeats work that fails, for a limited time and as long as a repetition is allowed.
 * @throws the last error
 */
export async function retryUntil<T>(
  run: () => Promise<T>,
  { mayRepeat = () => true, everyMs, forMs }: RetryUntilOptions,
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
