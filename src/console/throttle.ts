import { GatewayError } from '../errors.ts'

const WINDOW_MS = 60_000
const FAILURES_MAX = 30

/** Addresses remembered at most; the oldest are forgotten first. */
const ADDRESSES_MAX = 10_000

/** Holds back an address that keeps guessing: thirty wrong tokens a minute, in this process. */
export class Throttle {
  readonly #failures = new Map<string, { count: number; endsAt: number }>()

  /** @throws GatewayError LOGIN_THROTTLED */
  check(address: string): void {
    const failures = this.#failures.get(address)
    if (!failures) return
    const leftMs = failures.endsAt - Date.now()
    if (leftMs <= 0) this.#failures.delete(address)
    else if (failures.count >= FAILURES_MAX) throw new GatewayError('LOGIN_THROTTLED', { retryAfterMs: leftMs })
  }

  fail(address: string): void {
    const failures = this.#failures.get(address)
    if (failures) failures.count += 1
    else this.#failures.set(address, { count: 1, endsAt: Date.now() + WINDOW_MS })
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > ADDRESSES_MAX && oldest !== undefined) this.#failures.delete(oldest)
  }
}
