import type { Catalog } from '../catalog/catalog.ts'
import { capKeys } from '../redis/keys.ts'
import { type CapBucket, SHARED_BUCKET } from './bucket.ts'
import { Cap, type CapDeps } from './cap.ts'

export interface UpstreamCapsDeps extends CapDeps {
  /** Whose rules hold; operators change them while processes run. */
  catalog: Catalog
}

/** The caps of all upstreams, each made when it is first used. */
export class UpstreamCaps {
  readonly #deps: UpstreamCapsDeps
  readonly #caps = new Map<string, Cap>()

  constructor(deps: UpstreamCapsDeps) {
    this.#deps = deps
  }

  /** The cap of an API for one bucket. @throws Error when the catalog does not have the API */
  of({ slug }: { slug: string }, bucket: CapBucket): Cap {
    const name = capKeys.prefix(slug, bucket)
    const known = this.#caps.get(name)
    if (known) return known
    const api = this.#deps.catalog.get(slug)
    if (!api) throw new Error(`the catalog has no ${slug}`)
    const rules = () => (bucket === SHARED_BUCKET ? api.caps : api.byok.caps)
    const cap = new Cap(this.#deps, { slug, bucket }, rules)
    this.#caps.set(name, cap)
    return cap
  }
}
