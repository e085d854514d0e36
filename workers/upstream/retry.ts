import { setTimeout as delay } from 'node:timers/promises'
import { memoize } from '../../src/async/memoize.ts'
import { AttemptError } from '../errors/attempt-error.ts'

const RETRIES_MAX = 2

/** Longest pause before the first retry, milliseconds; twice as long before the second. */
const BACKOFF_MS_MAX = 200

/** Part of an upstream's calls under way that may be retries, and how many whatever the part. */
const BUDGET_PART = 0.2
const BUDGET_MIN = 3

/**
 * Calls of an upstream under way, and their retries: a failing upstream must not get three times
 * the requests of a healthy upstream.
 */
export interface RetryBudget {
  calls: number
  retries: number
}

/** The budget of each upstream, in this process. */
export function retryBudgets(): (api: { slug: string }) => RetryBudget {
  return memoize(
    ({ slug }: { slug: string }) => slug,
    () => ({ calls: 0, retries: 0 }),
  )
}

interface RetryOptions {
  /** Whether the request may be sent once more, now that a try has failed. */
  mayRepeat: () => boolean
  budget: RetryBudget
  /** No retry begins with less time left, milliseconds. */
  retryMsMin: number
  remainingMs: () => number
  signal: AbortSignal
}

/**
 * Repeats requests whose failure may be temporary, within the budget. A pause has full jitter,
 * which means anything from 0 to its bound; the upstream's Retry-After may make it longer.
 *
 * @throws the last attempt's error, or the signal's reason
 */
export async function withRetries<T>(
  run: (tryNumber: number) => Promise<T>,
  { mayRepeat, budget, retryMsMin, remainingMs, signal }: RetryOptions,
): Promise<T> {
  let retries = 0
  budget.calls += 1
  try {
    while (true) {
      try {
        return await run(retries + 1)
      } catch (error) {
        const isTemporary = error instanceof AttemptError && error.isRetryable
        if (!isTemporary || retries === RETRIES_MAX || !mayRepeat()) throw error
        const backOffMs = Math.round(Math.random() * BACKOFF_MS_MAX * 2 ** retries)
        const pauseMs = Math.max(backOffMs, error.retryAfterMs ?? 0)
        const isSpent = budget.retries >= Math.max(BUDGET_MIN, budget.calls * BUDGET_PART)
        if (remainingMs() < pauseMs + retryMsMin || isSpent) throw error
        retries += 1
        budget.retries += 1
        if (pauseMs > 0) await delay(pauseMs, undefined, { signal }).catch(() => undefined)
        signal.throwIfAborted()
      }
    }
  } finally {
    budget.retries -= retries
    budget.calls -= 1
  }
}
