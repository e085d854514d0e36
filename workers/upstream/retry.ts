import { setTimeout as delay } from 'node:timers/promises'
import pRetry from 'p-retry'
import { AttemptError } from './attempt-error.ts'

/** Repeats after the first attempt. */
const RETRIES_MAX = 2

const BACKOFF_MS_FIRST = 100
const BACKOFF_MS_MAX = 2_000

/** Share of an upstream's calls under way that may be repeats, and how many may be whatever the share. */
const BUDGET_SHARE = 0.2
const BUDGET_LEAST = 3

/** Bounds repeats per upstream, so that a failing one is not asked three times as much as a healthy one. */
export class RetryBudget {
  #calls = 0
  #repeats = 0

  enter(): void {
    this.#calls += 1
  }

  leave(): void {
    this.#calls -= 1
  }

  /** Takes room for one repeat; false when there is none. */
  take(): boolean {
    if (this.#repeats >= Math.max(BUDGET_LEAST, this.#calls * BUDGET_SHARE)) return false
    this.#repeats += 1
    return true
  }

  give(): void {
    this.#repeats -= 1
  }
}

export interface RetryOptions {
  isIdempotent: boolean
  budget: RetryBudget
  /** Longest an attempt takes, milliseconds: none is begun again that might not end in the time that remains. */
  attemptMs: number
  remainingMs: () => number
  signal: AbortSignal
}

/**
 * Runs an attempt again while it fails in a way that may pass: after what the upstream asks for, else with full jitter
 * (Brooker, "Exponential Backoff and Jitter", 2015); within the budget, and only where an attempt can end before the deadline.
 *
 * @throws the last attempt's error, or the signal's reason
 */
export async function withRetries<T>(run: (attemptNumber: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { budget, attemptMs, remainingMs, signal } = options
  let repeats = 0
  budget.enter()
  try {
    return await pRetry(run, {
      retries: options.isIdempotent ? RETRIES_MAX : 0,
      minTimeout: 0,
      maxTimeout: 0,
      signal,
      shouldRetry: async ({ error, attemptNumber }) => {
        if (!(error instanceof AttemptError && error.isRetryable)) return false
        const pauseMs =
          error.retryAfterMs ?? Math.random() * Math.min(BACKOFF_MS_FIRST * 2 ** attemptNumber, BACKOFF_MS_MAX)
        if (remainingMs() < pauseMs + attemptMs || !budget.take()) return false
        repeats += 1
        await delay(pauseMs, undefined, { signal })
        return true
      },
    })
  } finally {
    budget.leave()
    for (; repeats > 0; repeats -= 1) budget.give()
  }
}
