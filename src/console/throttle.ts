const WINDOW_MS = 60_000
const FAILURES_MAX = 30

/** Addresses remembered at most; the oldest are forgotten first. */
const ADDRESSES_MAX = 10_000

/**
 * Counts wrong operator tokens by address, in this process: after thirty in a minute further ones are answered 429. The
 * right token is never refused: it is compared first.
 */
export class Throttle {
  readonly #failures = new Map<string, { count: number; endsAt: number }>()

  /** Counts a wrong token. @returns how long the address is to wait, milliseconds; 0 while it may go on */
  fail(address: string): number {
    const known = this.#failures.get(address)
    const failures = known && known.endsAt > Date.now() ? known : { count: 0, endsAt: Date.now() + WINDOW_MS }
    failures.count += 1
    this.#failures.delete(address)
    this.#failures.set(address, failures)
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > ADDRESSES_MAX && oldest !== undefined) this.#failures.delete(oldest)
    return failures.count > FAILURES_MAX ? Math.max(1, failures.endsAt - Date.now()) : 0
  }
}
