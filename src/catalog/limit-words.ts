import type { ApiEndpoint } from './api-endpoint.ts'
import type { Api } from './catalog.ts'
import type { Caps } from './upstream.ts'

const number = new Intl.NumberFormat('en-GB')

/** A number for people, `10,000`. */
export const numberWords = (value: number): string => number.format(value)

const UNITS: [seconds: number, name: string][] = [
  [604_800, 'week'],
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
]

/** A span of time for people: `5 minutes`, `1 day`. */
export function spanWords(seconds: number): string {
  const [length, name] = UNITS.find(([unit]) => seconds >= unit && seconds % unit === 0) ?? [1, 'second']
  const count = Math.round((seconds / length) * 100) / 100
  return `${numberWords(count)} ${name}${count === 1 ? '' : 's'}`
}

/**
 * What a source allows to all callers of this gateway together, in words:
 * `600 per minute, 5,000 per hour, 4 at once`.
 */
export function capWords(caps: Caps): string {
  return [rateWords(caps), `${numberWords(caps.concurrency)} at once`].filter(Boolean).join(', ')
}

function rateWords({ rates }: Caps): string {
  const each = rates.map(({ max, seconds }) => {
    const span = spanWords(seconds)
    return `${numberWords(max)} per ${span.startsWith('1 ') ? span.slice(2) : span}`
  })
  return each.join(', ')
}

/**
 * For the operator: the rule of a source that asks for a `CONTACT` and, if a `CONTACT` would change
 * the rates, both rates. Undefined if the source misses no contact.
 */
export function contactWords({ slug, caps, missingContact }: Api): string | undefined {
  if (!missingContact) return undefined
  const { rule } = missingContact
  const [now, then] = [rateWords(caps), rateWords(missingContact.caps)]
  return now === then
    ? `${slug}: ${rule}`
    : `${slug}: ${rule}, so its cap is ${now}. If you set CONTACT, the cap is ${then}`
}

/** What a call of an endpoint changes, in words; empty if it changes nothing. */
export function effectWords({ declaration: { effect = 'read' } }: ApiEndpoint): string {
  if (effect === 'read') return ''
  return effect === 'once'
    ? 'Changes something at its source. The gateway never sends the call twice.'
    : 'Changes something at its source. Sending the same call again does no harm.'
}

/** How long answers of an endpoint are stored, in words. */
export function cacheWords({ declaration: { cache, pool, effect = 'read' } }: ApiEndpoint): string {
  if (effect !== 'read') return 'Not cached.'
  if (!cache)
    return pool ? 'Not cached. Items come from a prefetched pool.' : 'Not cached. Each call reaches the source.'
  const { seconds, staleIfErrorSeconds = 0, notFoundSeconds } = cache
  if (seconds === 0) {
    const missing = notFoundSeconds ? ` “Not found” is cached ${spanWords(notFoundSeconds)}.` : ''
    return `Not cached; identical calls at the same moment share one request.${missing}`
  }
  const fresh =
    typeof seconds === 'number' ? `Cached ${spanWords(seconds)}` : 'Cached for a time that depends on the answer'
  return staleIfErrorSeconds > 0
    ? `${fresh} (up to ${spanWords(staleIfErrorSeconds)} longer if the source is down).`
    : `${fresh}.`
}

/** Whether an older stored answer may be served while the source fails. */
export function servesStored(api: Api): boolean {
  return [...api.endpoints.values()].some(({ declaration: endpoint }) => (endpoint.cache?.staleIfErrorSeconds ?? 0) > 0)
}
