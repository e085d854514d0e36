import { LRUCache } from 'lru-cache'
import type { ReplyHead } from '../queue/frame.ts'

/** Answers that are remembered; past it the one that was not called for longest is forgotten. */
const ANSWERS_MAX = 50_000

/** How long after a call joined an identical one is taken to share its answer, milliseconds. */
const EXPECTED_MS = 1_000

/**
 * The stored answers that an API node knows to be there: replies tell for how long, and a call on its way to one brings
 * it. A call for one of them needs no place in its upstream's wait queue, and no look-up tells more cheaply. Where the
 * node is wrong, because an answer was dropped or its call failed, the worker finds none and joins the queue itself.
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

  /** What a reply tells of its answer: `freshMs`, for how long it is there for others; a failure is not kept. */
  learn(key: string | undefined, { code, freshMs }: Pick<ReplyHead, 'code' | 'freshMs'>): void {
    if (key === undefined) return
    if (freshMs !== undefined) this.#until.set(key, performance.now() + freshMs)
    else if (code !== undefined) this.#until.delete(key)
  }
}
