import { FAILURES_TO_OPEN, HANGING_MS } from '../../src/health/breaker.ts'

/** Requests to one upstream that nobody waited for to the end, since its last answer. */
interface Unanswered {
  since: number
  abandoned: number
}

/**
 * Notices an upstream that answers nobody while no caller has the patience to see it hang. What callers without
 * patience leave behind proves nothing, for its answers may just be slower than they are patient: a probe must decide.
 */
export class UnansweredRequests {
  readonly #bySlug = new Map<string, Unanswered>()
  readonly #now: () => number

  /** `now`, for tests: a clock that only goes forward, milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The upstream has answered, whatever it said, or a failure was counted. */
  answered(slug: string): void {
    this.#bySlug.delete(slug)
  }

  /**
   * A request ended because its call did, too early to tell anything by itself.
   *
   * @returns whether a probe should find out if the upstream hangs; counting begins anew then
   */
  abandoned(slug: string, tookMs: number): boolean {
    const now = this.#now()
    const { since, abandoned } = this.#bySlug.get(slug) ?? { since: now - tookMs, abandoned: 0 }
    const isDoubtful = abandoned + 1 >= FAILURES_TO_OPEN && now - since >= HANGING_MS
    if (isDoubtful) this.#bySlug.delete(slug)
    else this.#bySlug.set(slug, { since, abandoned: abandoned + 1 })
    return isDoubtful
  }
}
