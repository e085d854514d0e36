import { LRUCache } from 'lru-cache'
import { isDependencyAway } from '../errors.ts'
import type { Principal } from './authenticate.ts'

const PRINCIPALS_MAX = 10_000

/** Age from which a principal in use is renewed in the background, milliseconds. */
const RENEW_MS = 30_000

/**
 * Longest use of a principal without a renewal while Postgres answers, milliseconds. Changes show
 * earlier in the account's version.
 */
const FRESH_MS = 60_000

/** The same while Postgres does not answer. */
const PRINCIPAL_MS_MAX = 2 * FRESH_MS

/** Pause after a failed renewal, milliseconds. */
const RENEW_AGAIN_MS = 1_000

/** `lookedUpAt` of a principal that the next request must look up again. */
const FORGOTTEN = Number.NEGATIVE_INFINITY

type LookUp = (wasAccepted: boolean) => Promise<Principal>

interface Entry {
  principal: Principal
  lookedUpAt: number
  /**
   * Whether the last renewal failed because Postgres did not answer, so that the entry was kept.
   */
  isKept: boolean
}

export class PrincipalCache {
  readonly #now: () => number
  readonly #entries: LRUCache<string, Entry, LookUp>

  constructor(now: () => number = Date.now) {
    this.#now = now
    this.#entries = new LRUCache({
      max: PRINCIPALS_MAX,
      ttl: RENEW_MS,
      ttlResolution: 0,
      perf: { now },
      // If `forget` is called during a look-up, the look-up still serves the calls that wait for
      // it, but no later call.
      ignoreFetchAbort: true,
      fetchMethod: async (_key, known, { context: lookUp, options }) => {
        try {
          return { principal: await lookUp(known !== undefined), lookedUpAt: this.#now(), isKept: false }
        } catch (error) {
          if (known === undefined || !isDependencyAway(error)) throw error
          // The credential still counts as known.
          options.noDeleteOnFetchRejection = true
          if (!this.#isUsable(known)) throw error
          // Fails open for a limited time, because the account's version in Redis is compared on
          // every call.
          // An entry of lru-cache is stale only after its ttl has passed.
          options.ttl = RENEW_AGAIN_MS - 1
          return { ...known, isKept: true }
        }
      },
    })
  }

  /**
   * Concurrent calls share one look-up, which gets whether the credential is known. While look-ups
   * fail with DEPENDENCY_UNAVAILABLE, a known principal is kept for a minute at least.
   */
  async get(key: string, lookUp: LookUp): Promise<Principal> {
    const fresh = this.#entries.get(key, { noDeleteOnStaleGet: true })
    if (fresh && this.#isUsable(fresh)) return fresh.principal
    const known = this.#entries.peek(key, { allowStale: true })
    const isUsable = known !== undefined && this.#isUsable(known)
    const { principal } = await this.#entries.forceFetch(key, {
      context: lookUp,
      forceRefresh: !isUsable,
      allowStale: isUsable && (known.isKept || this.#now() - known.lookedUpAt < FRESH_MS),
    })
    return principal
  }

  /**
   * Makes the next request look the credential up again, unless that was done since `stale` was
   * read. The credential still counts as known. A look-up under way may be stale too, and is not
   * shared.
   */
  forget(key: string, stale: Principal | undefined): void {
    const entry = this.#entries.peek(key, { allowStale: true })
    if (!entry || entry.principal !== stale || entry.lookedUpAt === FORGOTTEN) return
    this.#entries.set(key, { ...entry, lookedUpAt: FORGOTTEN })
  }

  /** Without Redis no change is announced: forget everything when the connection is lost. */
  clear(): void {
    this.#entries.clear()
  }

  #isUsable({ principal, lookedUpAt }: Entry): boolean {
    const now = this.#now()
    return now < principal.expiresAt && now - lookedUpAt < PRINCIPAL_MS_MAX
  }
}
