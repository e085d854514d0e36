import { memoize } from '../async/memoize.ts'
import { RESTART_RETRY, retryUntil } from '../async/retry-until.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import type { Caps } from '../catalog/upstream.ts'
import { type CapBucket, SHARED_BUCKET, UNPROVEN_BUCKET, type WaitQueueEntry } from '../queue/wait-queue-entry.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { capKeys } from '../redis/keys.ts'
import { Cap, type CapDeps } from './cap.ts'

interface UpstreamCapsDeps extends CapDeps {
  /** Its rules are read at each use, because operators change them while processes run. */
  catalog: Catalog
}

/**
 * Most caps that a process keeps, because callers can add any number of keys. Beyond it the least
 * recently used cap is forgotten.
 */
export const CAPS_KEPT_MAX = 2_000

export class UpstreamCaps {
  readonly #redis: RedisConnection
  /**
   * The cap of an API for one bucket.
   * @throws Error if the catalog does not have the API
   */
  readonly of: (api: { slug: string }, bucket: CapBucket) => Cap

  constructor(deps: UpstreamCapsDeps) {
    this.#redis = deps.redis
    this.of = memoize(
      ({ slug }, bucket) => capKeys.prefix(slug, bucket),
      ({ slug }, bucket) => {
        const api = deps.catalog.source(slug)
        if (!api) throw new Error(`the catalog has no ${slug}`)
        // Looked up each time, because a new document may have other caps.
        return new Cap(deps, { slug, bucket }, () => rulesOf(deps.catalog.source(slug) ?? api, bucket))
      },
      CAPS_KEPT_MAX,
    )
  }

  /**
   * Takes a call out of the wait queue of its cap, because it would delay other calls until its
   * deadline. Returns after the first try. A failed try is repeated in the background. Never
   * throws.
   */
  async leaveWaitQueue(entry: WaitQueueEntry): Promise<void> {
    const leave = () => this.of(entry, entry.bucket).leaveWaitQueue(entry)
    const mayRepeat = () => this.#redis.status !== 'end'
    await leave().catch(() => void retryUntil(leave, { ...RESTART_RETRY, mayRepeat }).catch(() => undefined))
  }
}

/**
 * At most this part of the shared cap's rates and of its concurrency is for unproven keys, see
 * `acquirePermit`.
 */
const UNPROVEN_PART = 1 / 4

function rulesOf({ caps, forCallerKeys }: Api, bucket: CapBucket): Caps {
  if (bucket === SHARED_BUCKET) return caps
  if (bucket !== UNPROVEN_BUCKET) return forCallerKeys.caps
  const partOf = (max: number): number => Math.max(1, Math.floor(max * UNPROVEN_PART))
  const rates = caps.rates.map(({ max, seconds }) => ({ max: partOf(max), seconds }))
  return { concurrency: partOf(caps.concurrency), rates }
}
