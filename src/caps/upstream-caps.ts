import { memoizeRecent } from '../async/memoize.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { capKeys } from '../redis/keys.ts'
import { type CapBucket, SHARED_BUCKET } from './bucket.ts'
import { Cap, type CapDeps } from './cap.ts'

export interface UpstreamCapsDeps extends CapDeps {
  /** Its rules hold; operators change them while processes run. */
  catalog: Catalog
}

/** Caps of callers' keys come and go with the keys. */
export const CAPS_KEPT_MAX = 2_000

export class UpstreamCaps {
  /** The cap of an API for one bucket. @throws Error when the catalog does not have the API */
  readonly of: (api: { slug: string }, bucket: CapBucket) => Cap

  constructor(deps: UpstreamCapsDeps) {
    this.of = memoizeRecent(
      ({ slug }, bucket) => capKeys.prefix(slug, bucket),
      ({ slug }, bucket) => {
        const api = deps.catalog.get(slug)
        if (!api) throw new Error(`the catalog has no ${slug}`)
        return new Cap(deps, { slug, bucket }, () => (bucket === SHARED_BUCKET ? api.caps : api.forCallerKeys.caps))
      },
      CAPS_KEPT_MAX,
    )
  }
}
