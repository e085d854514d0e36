import type { Api, Catalog } from './catalog.ts'

/** What is written from the catalog, written anew when operators have changed what it shows. */
export function perCatalogState<T>(catalog: Catalog, write: () => T): () => T {
  let state = stateOf(catalog)
  let written = write()
  return () => {
    const now = stateOf(catalog)
    if (now !== state) {
      written = write()
      state = now
    }
    return written
  }
}

/** The APIs that are offered at all. */
export function offeredApis(catalog: Catalog): Api[] {
  return [...catalog.values()].filter((api) => !api.isSwitchedOff)
}

/** Names everything of the catalog that operators can change. */
export function stateOf(catalog: Catalog): string {
  const parts = [...catalog.values()].map(
    ({ slug, tierRequired, enabled, needsCallerKey, isSwitchedOff, pausedMode, caps }) =>
      [slug, tierRequired, enabled, needsCallerKey, isSwitchedOff, pausedMode, caps] as const,
  )
  return JSON.stringify(parts)
}
