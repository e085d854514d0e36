import type { Catalog } from '../catalog/catalog.ts'
import { stateOf } from '../catalog/catalog-state.ts'
import type { HealthCache } from './health-cache.ts'

/**
 * A text that changes with everything that visitors can see of the catalog: the settings of
 * operators, the state and score of each API, and whether calls are served at all.
 */
export function publicStateOf(catalog: Catalog, health: HealthCache): string {
  const scores = [...catalog.keys()].map((slug) => {
    const { status, score, since, cause, lastFailure, lastCallAt, lastProbeAt, limitedUntil } = health.of(slug)
    return [status, score, since, cause, lastFailure?.words, lastCallAt > 0, lastProbeAt > 0, limitedUntil].join(' ')
  })
  return `${stateOf(catalog)} ${health.isStale} ${scores.join()}`
}
