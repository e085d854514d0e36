import { type Memoized, memoize } from '../../src/async/memoize.ts'
import { CAPS_KEPT_MAX, type UpstreamCaps } from '../../src/caps/upstream-caps.ts'
import type { Catalog } from '../../src/catalog/catalog.ts'
import type { HealthCache } from '../../src/health/health-cache.ts'
import type { Log } from '../../src/log.ts'
import { type CapBucket, SHARED_BUCKET } from '../../src/queue/wait-queue-entry.ts'
import { capKeys } from '../../src/redis/keys.ts'
import type { GrantLedger } from './grant-ledger.ts'
import { PermitClient } from './permit-client.ts'
import { AHEAD_MAX } from './permits-ahead.ts'

interface PermitClientsDeps {
  caps: UpstreamCaps
  catalog: Catalog
  log: Log
  grants: GrantLedger
  health: Pick<HealthCache, 'onChange' | 'usualMs'>
}

/** Answer time of an upstream whose own is not known, milliseconds. */
const USUAL_MS_DEFAULT = 100

/** A client that is forgotten while calls wait in it or hold its permits goes on serving them. */
export class PermitClients {
  readonly of: Memoized<[api: { slug: string }, bucket: CapBucket], PermitClient>

  constructor({ caps, catalog, log, grants, health }: PermitClientsDeps) {
    this.of = memoize(
      ({ slug }, bucket) => capKeys.of(slug, bucket, 'state'),
      ({ slug }, bucket) => {
        const cap = caps.of({ slug }, bucket)
        const isPausedByOperator = (): boolean => catalog.source(slug)?.pausedMode === 'hold'
        const usualMs = (): number => health.usualMs(slug) ?? USUAL_MS_DEFAULT
        // Only what an upstream says of the shared cap is announced to all workers.
        const aheadMax = bucket === SHARED_BUCKET ? AHEAD_MAX : 0
        return new PermitClient({ slug, bucket, cap, log, grants, aheadMax, isPausedByOperator, usualMs })
      },
      CAPS_KEPT_MAX,
    )
    health.onChange((slug) => {
      for (const client of this.of.made.values()) if (client.slug === slug) client.followHealth()
    })
  }

  /** Sends what was released: else leases would count until they end by themselves. */
  async close(): Promise<void> {
    await Promise.all([...this.of.made.values()].map((client) => client.close().catch(() => undefined)))
  }

  /** `<cap's name> <waiter>`; the waiter may be another worker's. */
  onWakeUp(message: string): void {
    const end = message.indexOf(' ')
    this.of.made.get(message.slice(0, end))?.wake(message.slice(end + 1))
  }
}
