import type { Api, Catalog } from './catalog.ts'

/**
 * What is written from the catalog at its first use, and anew when operators have changed what it
 * shows, or a document.
 */
export function perCatalogState<T>(catalog: Catalog, write: () => T): () => T {
  let written: { state: string; value: T } | undefined
  return () => {
    const state = stateOf(catalog)
    if (written?.state !== state) written = { state, value: write() }
    return written.value
  }
}

/** The APIs that are offered at all. */
export function offeredApis(catalog: Catalog): Api[] {
  return [...catalog.values()].filter((api) => !api.isSwitchedOff)
}

/** Names everything of the catalog that can change while a process runs. */
export function stateOf(catalog: Catalog): string {
  const parts = [...catalog.values()].map(
    ({ slug, upstream: { own }, tierRequired, enabled, needsCallerKey, isSwitchedOff, pausedMode, caps }) =>
      [slug, own?.digest, tierRequired, enabled, needsCallerKey, isSwitchedOff, pausedMode, caps] as const,
  )
  return JSON.stringify(parts)
}
