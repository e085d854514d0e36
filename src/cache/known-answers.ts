import { LRUCache } from 'lru-cache'
import type { ReplyHead } from '../queue/reply-head.ts'

/** Answers that are remembered; beyond it the least recently used answer is forgotten. */
const ANSWERS_MAX = 50_000

/**
 * Longest time after a call was admitted for which identical calls are expected to share its
 * answer. Milliseconds.
 */
const EXPECTED_MS = 1_000

/**
 * The stored answers that an API node knows of without a look-up: replies say how long an answer is
 * fresh, and a call that is on its way to an answer will store it. A call for a known answer does
 * not join its upstream's wait queue. If the node is wrong, because an answer was evicted or its
 * call failed, the worker finds none and joins the queue itself.
 */
export class KnownAnswers {
  /** Until when an answer is fresh or expected, by its key; milliseconds of the monotonic clock. */
  readonly #until = new LRUCache<string, number>({ max: ANSWERS_MAX })

  has(key: string): boolean {
    return (this.#until.get(key) ?? 0) > performance.now()
  }

  /** A call is on its way whose answer will be stored. */
  expect(key: string): void {
    this.#until.set(key, Math.max(this.#until.get(key) ?? 0, performance.now() + EXPECTED_MS))
  }

  /**
   * Learns from a reply: `freshMs` is how long the answer is fresh; a stored UPSTREAM_NOT_FOUND is
   * an answer as well.
   */
  learn(key: string | undefined, { code, freshMs }: Pick<ReplyHead, 'code' | 'freshMs'>): void {
    if (key === undefined) return
    if (freshMs !== undefined) this.#until.set(key, performance.now() + freshMs)
    else if (code !== undefined) this.#until.delete(key)
  }
}
