import { FAILURES_TO_OPEN, HANGING_MS } from '../../src/health/health-thresholds.ts'

/** Requests since the upstream's last answer. */
interface Unanswered {
  since: number
  abandoned: number
}

/**
 * Notices an upstream that hangs although no caller waits long enough to see it. Impatient callers
 * prove nothing, because the upstream may just be slow, so a probe must decide.
 */
export class UnansweredRequests {
  readonly #bySlug = new Map<string, Unanswered>()
  readonly #now: () => number

  /** Monotonic clock for tests, milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** An answer came, or a failure was counted: the requests before it do not count. */
  forget(slug: string): void {
    this.#bySlug.delete(slug)
  }

  /**
   * Records a request that ended with its call, too early to count.
   * @returns whether a probe should decide
   */
  recordAbandoned(slug: string, tookMs: number): boolean {
    const now = this.#now()
    const { since, abandoned } = this.#bySlug.get(slug) ?? { since: now - tookMs, abandoned: 0 }
    const isDoubtful = abandoned + 1 >= FAILURES_TO_OPEN && now - since >= HANGING_MS
    if (isDoubtful) this.#bySlug.delete(slug)
    else this.#bySlug.set(slug, { since, abandoned: abandoned + 1 })
    return isDoubtful
  }
}
