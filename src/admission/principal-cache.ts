import { LRUCache } from 'lru-cache'
import { SingleFlight } from '../async/single-flight.ts'
import { isDependencyAway } from '../errors.ts'
import type { Principal } from './authenticate.ts'

const PRINCIPALS_MAX = 10_000

/** Age from which a principal in use is renewed in the background, milliseconds. */
const RENEW_MS = 30_000

/**
 * Longest use of a principal while Postgres answers, milliseconds; its version shows changes
 * meanwhile.
 */
const FRESH_MS = 60_000

/** The same while Postgres does not answer. */
const PRINCIPAL_MS_MAX = 2 * FRESH_MS

/** Pause after a renewal that failed, milliseconds. */
const RENEW_AGAIN_MS = 1_000

type LookUp = (isKnown: boolean) => Promise<Principal>

interface Entry {
  principal: Principal
  lookedUpAt: number
  lookUpNumber: number
  /** When the last renewal failed; undefined: it did not. */
  failedAt: number | undefined
}

export class PrincipalCache {
  readonly #entries = new LRUCache<string, Entry>({ max: PRINCIPALS_MAX })
  readonly #lookUps = new SingleFlight<Principal>()
  readonly #now: () => number
  #lookUpCount = 0

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /**
   * Concurrent calls share one look-up, which gets whether the credential is known. While look-ups
   * fail with DEPENDENCY_UNAVAILABLE, a known principal is kept for a minute at least.
   */
  async get(key: string, lookUp: LookUp): Promise<Principal> {
    const entry = this.#entries.get(key)
    const now = this.#now()
    if (!entry || now >= entry.principal.expiresAt || now - entry.lookedUpAt >= PRINCIPAL_MS_MAX) {
      return await this.#renew(key, lookUp)
    }
    const ageMs = now - entry.lookedUpAt
    if (ageMs < RENEW_MS) return entry.principal
    const hasJustFailed = entry.failedAt !== undefined && now - entry.failedAt < RENEW_AGAIN_MS
    if (ageMs < FRESH_MS || entry.failedAt !== undefined) {
      // The entry has the outcome: a failure keeps it, a credential that ended removes it.
      if (!hasJustFailed) void this.#renew(key, lookUp).catch(() => undefined)
      return entry.principal
    }
    try {
      return await this.#renew(key, lookUp)
    } catch (error) {
      // Fails open for a bounded time: the account's version, which Redis keeps, is compared on
      // every call.
      if (isDependencyAway(error)) return entry.principal
      throw error
    }
  }

  #renew(key: string, lookUp: LookUp): Promise<Principal> {
    return this.#lookUps.run(key, async () => {
      this.#lookUpCount += 1
      const lookUpNumber = this.#lookUpCount
      const isOvertaken = () => (this.#entries.peek(key)?.lookUpNumber ?? 0) > lookUpNumber
      try {
        const principal = await lookUp(this.#entries.has(key))
        const entry = { principal, lookedUpAt: this.#now(), lookUpNumber, failedAt: undefined }
        if (!isOvertaken()) this.#entries.set(key, entry)
        return principal
      } catch (error) {
        if (isOvertaken()) throw error
        const entry = this.#entries.peek(key)
        if (entry && isDependencyAway(error)) entry.failedAt = this.#now()
        else this.#entries.delete(key)
        throw error
      }
    })
  }

  /**
   * Makes the next request look the credential up again, unless that was done since `stale` was
   * read. The credential still counts as known. A look-up under way may be stale too, and is not
   * shared.
   */
  forget(key: string, stale: Principal | undefined): void {
    const entry = this.#entries.peek(key)
    if (!entry || entry.principal !== stale || entry.lookedUpAt === Number.NEGATIVE_INFINITY) return
    entry.lookedUpAt = Number.NEGATIVE_INFINITY
    this.#lookUps.forget(key)
  }

  /** Without Redis no change is announced: forget everything when the connection is lost. */
  clear(): void {
    this.#entries.clear()
  }
}
