import { setTimeout as delay } from 'node:timers/promises'
import pRetry from 'p-retry'
import { memoize } from '../../src/async/memoize.ts'
import { AttemptError } from './attempt-error.ts'

const RETRIES_MAX = 2

/** Longest pause before the first repeat, milliseconds; twice as long before the second. */
const BACKOFF_MS_MAX = 200

/** Part of an upstream's calls under way that may be repeats, and how many whatever the part. */
const BUDGET_PART = 0.2
const BUDGET_MIN = 3

/** A failing upstream must not get three times the requests of a healthy upstream. */
export class RetryBudget {
  #calls = 0
  #repeats = 0

  enter(): void {
    this.#calls += 1
  }

  leave(): void {
    this.#calls -= 1
  }

  take(): boolean {
    if (this.#repeats >= Math.max(BUDGET_MIN, this.#calls * BUDGET_PART)) return false
    this.#repeats += 1
    return true
  }

  give(): void {
    this.#repeats -= 1
  }
}

/** The budget of each upstream, in this process. */
export function retryBudgets(): (api: { slug: string }) => RetryBudget {
  return memoize(
    ({ slug }: { slug: string }) => slug,
    () => new RetryBudget(),
  )
}

export interface RetryOptions {
  isIdempotent: boolean
  budget: RetryBudget
  /** No repeat begins with less time left, milliseconds. */
  repeatMsMin: number
  remainingMs: () => number
  signal: AbortSignal
}

/**
 * Repeats failures that may be temporary, within the budget.
 *
 * @throws the last attempt's error, or the signal's reason
 */
export async function withRetries<T>(run: (attemptNumber: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { budget } = options
  budget.enter()
  try {
    return await run(1)
  } catch (error) {
    return await repeatAfter(error, run, options)
  } finally {
    budget.leave()
  }
}

async function repeatAfter<T>(
  first: unknown,
  run: (attemptNumber: number) => Promise<T>,
  { isIdempotent, budget, repeatMsMin, remainingMs, signal }: RetryOptions,
): Promise<T> {
  let repeats = 0
  /** Rest of the upstream's Retry-After after the back-off, milliseconds. */
  let furtherMs = 0
  try {
    return await pRetry(
      async (attemptNumber) => {
        if (attemptNumber === 1) throw first
        if (furtherMs > 0) await delay(furtherMs, undefined, { signal })
        return await run(attemptNumber)
      },
      {
        retries: isIdempotent ? RETRIES_MAX : 0,
        // Full jitter: a pause is anything from 0 to its bound. `randomize` would only add to a
        // bound from below.
        minTimeout: Math.random() * BACKOFF_MS_MAX,
        signal,
        shouldRetry: ({ error, retryDelay }) => {
          if (!(error instanceof AttemptError && error.isRetryable)) return false
          furtherMs = Math.max(0, (error.retryAfterMs ?? 0) - retryDelay)
          if (remainingMs() < retryDelay + furtherMs + repeatMsMin || !budget.take()) return false
          repeats += 1
          return true
        },
      },
    )
  } finally {
    for (; repeats > 0; repeats -= 1) budget.give()
  }
}
