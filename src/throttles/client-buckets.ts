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
   *   each bucket has so many
   */
  take(address: string, count = 1): number {
    const networks = clientsAround(address).map(({ name, clients }) => ({ name, buckets: this.#bucketsOf(clients) }))
    const waits = networks.map(({ name, buckets }) => buckets.take(name, count))
    const waitMs = Math.max(...waits)
    if (waitMs === 0) return 0
    for (const [index, { name, buckets }] of networks.entries()) if (waits[index] === 0) buckets.refund(name, count)
    return waitMs
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
