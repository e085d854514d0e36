import type { Api, Catalog } from './catalog.ts'

/**
 * Makes a value from the catalog at its first use, and keeps the value. It is made again after
 * operators have changed the catalog, or a document has changed.
 */
export function perCatalogState<T>(catalog: Catalog, write: () => T): () => T {
  let written: { state: string; value: T } | undefined
  return () => {
    const state = stateOf(catalog)
    if (written?.state !== state) written = { state, value: write() }
    return written.value
  }
}

/** The APIs that the operator has not switched off. */
export function offeredApis(catalog: Catalog): Api[] {
  return [...catalog.values()].filter((api) => !api.isSwitchedOff)
}

/** A text that changes with everything in the catalog that can change while a process runs. */
export function stateOf(catalog: Catalog): string {
  const parts = [...catalog.values()].map(
    ({ slug, upstream: { own }, tierRequired, enabled, needsCallerKey, isSwitchedOff, pausedMode, caps }) =>
      [slug, own?.digest, tierRequired, enabled, needsCallerKey, isSwitchedOff, pausedMode, caps] as const,
  )
  return JSON.stringify(parts)
}
