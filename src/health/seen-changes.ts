import type { HealthChange } from '../db/health-changes.ts'
import { readStatus } from './health-view.ts'

/**
 * The health of an API over time as its callers saw it: while its source was down, the API was
 * Degraded, as long as the fallback source was not down too. A change that callers did not see is
 * left out.
 *
 * @param own changes of the source, newest first
 * @param fallback changes of the fallback source, newest first
 * @returns changes, newest first
 */
export function seenChanges(own: HealthChange[], fallback: HealthChange[]): HealthChange[] {
  const status = { own: readStatus(own.at(-1)?.from_status), fallback: readStatus(fallback.at(-1)?.from_status) }
  const seen = () => (status.own === 'Down' && status.fallback !== 'Down' ? 'Degraded' : status.own)
  const changes: HealthChange[] = []
  for (const change of [...own, ...fallback].sort((one, other) => one.at.getTime() - other.at.getTime())) {
    const from = seen()
    status[own.includes(change) ? 'own' : 'fallback'] = readStatus(change.to_status)
    // A change of the source that leaves its state names a new cause.
    const isNewCause = own.includes(change) && change.from_status === change.to_status
    if (seen() !== from || isNewCause) changes.unshift({ ...change, from_status: from, to_status: seen() })
  }
  return changes
}
