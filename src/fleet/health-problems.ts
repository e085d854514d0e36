import { OF_THE_SOURCE, type Share, shareOf, shareWords, sourceFailures } from './failure-share.ts'
import type { HealthRow, Present, UpstreamRow } from './snapshot.ts'
import { causeWords, isOfLackingMembers, isOfRecovery, span } from './words.js'

/**
 * Problems that an API's health shows: that it is degraded or down, since when, why, and how many
 * calls fail meanwhile.
 */
export function healthProblems(row: UpstreamRow, at: number): Present[] {
  const { slug, enabled, health } = row
  if (!enabled || health === null || health.status === 'Healthy') return []
  const isDown = health.status === 'Down'
  // If the API is Down only by its score, the breaker may be closed.
  const isOpen = health.halfOpenInMs !== null
  const failing = sourceFailures(row, at)
  const since = health.since === null ? '' : ` for ${span(Math.max(0, at - health.since))}`
  const isLacking = !isDown && health.lastFailure === null && isOfLackingMembers(health.cause)
  const hasOtherForm = failing !== undefined && failsByForm(row)
  const cause = hasOtherForm ? OTHER_FORM : causeOf(health, isLacking)
  const recovers = !isDown && health.lastFailure === null && isOfRecovery(health.cause)
  const due = health.halfOpenInMs ? `; next attempt in ${span(health.halfOpenInMs)}` : '; next attempt due'
  const share = failing ? `; ${shareWords(failing, 'failed')}` : ''
  const verb = health.since === null ? 'is' : 'has been'
  const text = `${slug} ${verb} ${health.status.toLowerCase()}${since}${cause && `: ${cause}`}${isOpen ? due : ''}${share}`
  const problem = { label: health.status, slug, text, runbook: isDown ? 'upstream-down' : 'upstream-degraded' }
  if (isLacking && !failing) {
    return [
      {
        ...problem,
        rank: 2,
        callers: 'Callers get answers in which these members are null.',
        todo: 'Compare an answer of the source with the recorded answer of the API: members may have new names.',
      },
    ]
  }
  return [
    {
      ...problem,
      rank: isDown || failing ? 0 : 2,
      callers: isOpen
        ? refusedCallers(health)
        : health.answeredBy === null
          ? failedCallers(isDown, failing)
          : `Calls go to ${health.answeredBy}.`,
      todo: isDown
        ? 'Probe it; pause or disable it if it stays down.'
        : recovers
          ? 'No action needed unless it stays degraded.'
          : hasOtherForm
            ? 'Compare an answer of the source with the recorded answer of the API; pause the API until its file is changed.'
            : 'Probe it, and watch it.',
    },
  ]
}

/**
 * What callers get while the breaker is open. If an API is rarely probed, the next call tests it.
 */
function refusedCallers({ halfOpenInMs }: HealthRow): string {
  const words = 'get 502 UPSTREAM_UNAVAILABLE at once, or a stored answer.'
  return halfOpenInMs
    ? `Callers ${words}`
    : `The next call tests the source. Until it has ended, other callers ${words}`
}

/** What callers get while attempts are made. */
function failedCallers(isDown: boolean, failing: Share | undefined): string {
  if (failing && failing.count === failing.all) return 'Callers get 502.'
  return `${isDown || (failing && failing.count * 2 > failing.all) ? 'Many' : 'Some'} callers get 502 or wait longer.`
}

/** Shown instead of the last attempt, which may be a probe that reads only the status. */
const OTHER_FORM = 'its answers are not in the expected form'

/** Whether most failures are answers that the mapping of the API cannot read. */
function failsByForm(row: UpstreamRow): boolean {
  const unread = shareOf(['UPSTREAM_INVALID_RESPONSE'], row)
  return unread.isMany && unread.count * 2 > shareOf(OF_THE_SOURCE, row).count
}

/**
 * Why an API is not healthy: the outcome of the last attempt or, if the last attempt succeeded, the
 * reason for which the state began.
 */
function causeOf({ lastFailure, lastOkAt, cause, status }: HealthRow, isLacking: boolean): string {
  if (lastFailure) return lastFailure.words
  const began = causeWords({ cause, to: status })
  if (isLacking || lastOkAt === null) return began
  // The API was Down, and the present state began when it recovered.
  if (isOfRecovery(cause)) return `it recovers: ${began}`
  return [began, 'the last attempt succeeded'].filter(Boolean).join('; ')
}
