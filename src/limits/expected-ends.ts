import type { CallJob } from '../queue/call-job.ts'

type RunningCall = Pick<CallJob, 'id' | 'accountId' | 'mode' | 'slug' | 'isAsync' | 'limitsAcquiredAt' | 'deadline'>

/** What a call takes at an upstream of which nothing is known yet, milliseconds. */
const UNKNOWN_MS = 1_000

/**
 * When the calls of each account that began at this node are expected to end: after the forecast
 * wait for a permit and the time that half of the upstream's answers take. An account that is at
 * its limit of calls in flight is told so. Calls that began at other nodes are not known here, so a
 * call may end sooner than is said.
 */
export class ExpectedEnds {
  readonly #usualMs: (slug: string) => number | undefined
  readonly #now: () => number
  /** By account and mode, then by id of the call; milliseconds of the process's clock. */
  readonly #ends = new Map<string, Map<string, number>>()

  constructor(usualMs: (slug: string) => number | undefined, now = () => performance.now()) {
    this.#usualMs = usualMs
    this.#now = now
  }

  /**
   * @param etaMs forecast wait for a permit
   * @returns to be called when the call has ended, or goes on without its caller
   */
  begin(call: RunningCall, etaMs: number): (isUnderWay?: boolean) => void {
    const { id, mode, slug, limitsAcquiredAt, deadline } = call
    const key = keyOf(call)
    const workMs = mode === 'test' ? 0 : (this.#usualMs(slug) ?? UNKNOWN_MS)
    const ms = Math.min(etaMs + workMs, deadline - limitsAcquiredAt)
    const ends = this.#ends.get(key) ?? new Map<string, number>()
    this.#ends.set(key, ends.set(id, this.#now() + ms))
    const end = (): void => {
      ends.delete(id)
      if (ends.size === 0 && this.#ends.get(key) === ends) this.#ends.delete(key)
    }
    // Nobody tells this node when an asynchronous call ends: then its time is over at the latest
    // when it was expected.
    return (isUnderWay = false) => void (isUnderWay ? setTimeout(end, ms).unref() : end())
  }

  /**
   * Milliseconds until the next call of an account is expected to end; undefined if none of its
   * calls began here.
   */
  nextMs(account: Pick<RunningCall, 'accountId' | 'mode'>): number | undefined {
    const ends = this.#ends.get(keyOf(account))
    return ends && Math.max(0, Math.min(...ends.values()) - this.#now())
  }
}

function keyOf({ accountId, mode }: Pick<RunningCall, 'accountId' | 'mode'>): string {
  return `${accountId} ${mode}`
}
