import { clientsAround } from './client-network.ts'
import { TokenBuckets } from './token-buckets.ts'

/**
 * A token bucket for each client address, and a larger bucket for each network that a single
 * stranger may own.
 */
export class ClientBuckets {
  readonly #rate: { perSecond: number; burst: number }
  /** Buckets by the number of clients that a network counts as. */
  readonly #buckets = new Map<number, TokenBuckets>()

  constructor(rate: { perSecond: number; burst: number }) {
    this.#rate = rate
  }

  /**
   * @returns 0 if it took the tokens; otherwise it takes none and returns the milliseconds until
   *   there are so many tokens
   */
  take(address: string, count = 1): number {
    const taken: [TokenBuckets, string][] = []
    for (const { name, clients } of clientsAround(address)) {
      const buckets = this.#bucketsOf(clients)
      const waitMs = buckets.take(name, count)
      if (waitMs > 0) {
        for (const [others, other] of taken) others.refund(other, count)
        return waitMs
      }
      taken.push([buckets, name])
    }
    return 0
  }

  refund(address: string): void {
    for (const { name, clients } of clientsAround(address)) this.#bucketsOf(clients).refund(name)
  }

  #bucketsOf(clients: number): TokenBuckets {
    const known = this.#buckets.get(clients)
    if (known) return known
    const { perSecond, burst } = this.#rate
    const buckets = new TokenBuckets({ perSecond: clients * perSecond, burst: clients * burst })
    this.#buckets.set(clients, buckets)
    return buckets
  }
}
