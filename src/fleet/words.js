/**
 * A time span in words: the two largest units.
 *
 * @param {number} ms
 */
export function span(ms) {
  const seconds = Math.round(ms / 1_000)
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (seconds < 60) return `${seconds} s`
  const [large, name, small, lesser] =
    seconds < 3_600 ? [60, 'min', 1, 's'] : seconds < 86_400 ? [3_600, 'h', 60, 'min'] : [86_400, 'd', 3_600, 'h']
  const rest = Math.floor((seconds % large) / small)
  return `${Math.floor(seconds / large)} ${name}${rest > 0 ? ` ${rest} ${lesser}` : ''}`
}

/**
 * A time span in words: the largest unit alone.
 *
 * @param {number} ms
 */
export function briefSpan(ms) {
  return span(ms).split(' ', 2).join(' ')
}

/**
 * A share from 0 to 1 in percent. No rounding makes "some" of it "none" or "all".
 *
 * @param {number} share
 */
export function percent(share) {
  if (share > 0 && share < 0.000_5) return 'under 0.1 %'
  if (share < 1 && share >= 0.995) return 'over 99 %'
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`
}

/**
 * `1 call`, `34 calls`.
 *
 * @param {number} count
 * @param {string} one
 */
export function countOf(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`
}

/**
 * A number of bytes in MB.
 *
 * @param {number} bytes
 */
export function megabytes(bytes) {
  return `${(bytes / 1_048_576).toFixed(bytes < 10_485_760 ? 1 : 0)} MB`
}

/**
 * The time of day in UTC: `19:44:07`.
 *
 * @param {number} ms milliseconds since the epoch
 */
export function clockTime(ms) {
  return new Date(ms).toISOString().slice(11, 19)
}

/**
 * The state of an API in one word, as callers find it. The state that affects the most callers
 * comes first.
 *
 * @param {{
 *   enabled: boolean
 *   paused: unknown
 *   health: { status: 'Healthy' | 'Degraded' | 'Down'; checkedAt: unknown } | null
 *   cap: { limitedUntil: unknown } | null
 * }} row
 */
export function stateOf({ enabled, paused, health, cap }) {
  if (!enabled) return 'Disabled'
  if (paused !== null) return 'Paused'
  if (health === null) return 'Unknown'
  if (health.status === 'Down') return 'Down'
  if (cap?.limitedUntil) return 'Limited'
  return health.checkedAt === null ? 'Unchecked' : health.status
}

const CAUSES = {
  score: 'too many recent calls failed or were slow',
  'failures-in-a-row': 'several calls in a row failed',
  'trials-passed': 'three attempts in a row succeeded',
  'members-back': 'answers have the missing members again',
  'other-address': 'the source has another address',
}

const LACKS = 'lacks '

/**
 * Whether a state began because answers lack members that they always had. The cause names the
 * members.
 *
 * @param {string | null | undefined} cause
 */
export function isOfLackingMembers(cause) {
  return cause?.startsWith(LACKS) === true
}

/**
 * Whether a state began because attempts at a down upstream succeeded.
 *
 * @param {string | null | undefined} cause
 */
export function isOfRecovery(cause) {
  return cause === 'trials-passed'
}

const STATES = ['Healthy', 'Degraded', 'Down']

/**
 * @typedef {object} HealthChangeWords
 * @property {string | null | undefined} cause
 * @property {string} [from] the state before, if it is known
 * @property {string} to
 */

/**
 * Whether a change of health is an improvement.
 *
 * @param {Pick<HealthChangeWords, 'from' | 'to'>} change
 */
export function isRecovery({ from, to }) {
  return to === 'Healthy' || (from !== undefined && STATES.indexOf(to) < STATES.indexOf(from))
}

/**
 * Why a state of health began, in words without a capital letter and a full stop; empty if the
 * state never changed.
 *
 * @param {HealthChangeWords} change
 */
export function causeWords({ cause, from, to }) {
  if (!cause) return ''
  if (cause === 'score' && isRecovery({ from, to })) return 'calls succeed again'
  if (isOfLackingMembers(cause)) return `answers lack ${cause.slice(LACKS.length)}`
  return CAUSES[cause] ?? 'the source failed'
}
