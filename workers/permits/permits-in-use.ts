import type { Cap, ReleasedPermits } from '../../src/caps/cap.ts'
import type { PermitId } from '../../src/caps/replies.ts'
import { LEASE_MS } from '../../src/caps/timing.ts'
import type { Log } from '../../src/log.ts'

export interface Permit {
  id: PermitId
  /** The first poll did not bring it. */
  hasWaited: boolean
  /** Checked right before the first byte is written. */
  isFresh: () => boolean
  release: (tookMs: number) => void
  /** Instead of `release`, if nothing was sent. */
  giveBack: () => void
}

const RENEW_EVERY_MS = 1_500

/**
 * The permits of one cap that requests of this worker hold. It renews their leases, and gathers the
 * permits that ended until a poll releases them.
 */
export class PermitsInUse {
  readonly #cap: Cap
  readonly #log: Log
  readonly #held = new Set<PermitId>()
  #used: { id: PermitId; tookMs: number }[] = []
  #unused: PermitId[] = []
  #renewing: NodeJS.Timeout | undefined
  /** At the last renewal: a warning comes when there are more. */
  #lostLeases = 0

  constructor(cap: Cap, log: Log) {
    this.#cap = cap
    this.#log = log
  }

  /** A request holds the permit from now on. */
  hold(id: PermitId): void {
    this.#held.add(id)
    this.#renewing ??= setInterval(() => this.#renew(), RENEW_EVERY_MS)
  }

  /** The request has ended: the permit is released with the next poll. */
  release(id: PermitId, tookMs: number): void {
    this.#held.delete(id)
    this.#used.push({ id, tookMs })
  }

  /** Nothing was sent under these permits: they do not count from the next poll on. */
  giveBack(unused: PermitId[]): void {
    for (const id of unused) this.#held.delete(id)
    this.#unused.push(...unused)
  }

  get releasedCount(): number {
    return this.#used.length + this.#unused.length
  }

  /** Takes out what was released. A permit whose poll is lost ends with its lease, and counts. */
  drainReleased(): ReleasedPermits {
    const [used, unused] = [this.#used, this.#unused]
    this.#used = []
    this.#unused = []
    const total = used.reduce((sum, { tookMs }) => sum + tookMs, 0)
    return { ids: used.map(({ id }) => id), meanMs: total / Math.max(1, used.length), unused }
  }

  #renew(): void {
    if (this.#held.size === 0) {
      clearInterval(this.#renewing)
      this.#renewing = undefined
      return
    }
    const ids = [...this.#held]
    this.#cap.renew(ids, LEASE_MS).then(
      (renewed) => {
        const ended = ids.filter((id) => !this.#held.has(id)).length
        const lost = ids.length - renewed - ended
        // Other requests have their leases now: more are under way than the cap lets.
        if (lost > this.#lostLeases) this.#log.warn({ lost }, 'permit leases were gone before they were renewed')
        this.#lostLeases = lost
      },
      (error) => this.#log.warn({ err: error }, 'failed to renew permit leases'),
    )
  }
}
