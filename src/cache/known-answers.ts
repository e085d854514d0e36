import { LRUCache } from 'lru-cache'
import type { ReplyHead } from '../queue/reply-head.ts'

/** Most remembered answers. Beyond it the least recently used answer is forgotten. */
const ANSWERS_MAX = 50_000

/**
 * For how long after a call's admission identical calls are expected to share its answer,
 * milliseconds.
 */
const EXPECTED_MS = 1_000

/**
 * The stored answers that an API node knows without a look-up. Replies say how long an answer is
 * fresh, and a running call will store its answer. A call with a known answer does not join its
 * upstream's wait queue. If the node is wrong, because an answer was evicted or its call failed,
 * the worker finds no answer and joins the queue itself.
 */
export class KnownAnswers {
  /** Until when an answer is fresh or expected, by its key; milliseconds of the monotonic clock. */
  readonly #until = new LRUCache<string, number>({ max: ANSWERS_MAX })

  has(key: string): boolean {
    return (this.#until.get(key) ?? 0) > performance.now()
  }

  /** Records that a running call will store its answer. */
  expect(key: string): void {
    this.#until.set(key, Math.max(this.#until.get(key) ?? 0, performance.now() + EXPECTED_MS))
  }

  /**
   * Records what a reply says about the answer: `freshMs` is how long the answer is fresh. A stored
   * UPSTREAM_NOT_FOUND is an answer too. After any other failure the node expects no answer.
   */
  learn(key: string | undefined, { code, freshMs }: Pick<ReplyHead, 'code' | 'freshMs'>): void {
    if (key === undefined) return
    if (freshMs !== undefined) this.#until.set(key, performance.now() + freshMs)
    else if (code !== undefined) this.#until.delete(key)
  }
}
