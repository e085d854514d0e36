import type { Catalog } from '../catalog/catalog.ts'
import { stateOf } from '../catalog/catalog-state.ts'
import type { HealthCache } from './health-watch.ts'

/**
 * Names what everybody can see of the catalog now: what operators set, and each API's state and
 * score, and whether calls are served at all.
 */
export function publicStateOf(catalog: Catalog, health: HealthCache): string {
  const scores = [...catalog.keys()].map((slug) => {
    const { status, score, since, cause, lastFailure, lastCallAt, lastProbeAt, limitedUntil } = health.of(slug)
    return [status, score, since, cause, lastFailure?.words, lastCallAt > 0, lastProbeAt > 0, limitedUntil].join(' ')
  })
  return `${stateOf(catalog)} ${health.isStale} ${scores.join()}`
}
