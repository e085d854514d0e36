import type { AttemptRecord } from '../../src/health/record.ts'

/** Codes of answers that are the upstream's failure. */
const FAILURES = new Set(['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT', 'UPSTREAM_INVALID_RESPONSE', 'UPSTREAM_TOO_LARGE'])

/** Failures that what a caller added to the request explains: with undeclared parameters they say nothing. */
const OF_THE_ANSWER = new Set(['UPSTREAM_INVALID_RESPONSE', 'UPSTREAM_TOO_LARGE'])

/** Codes that say nothing of its health: our rate, our key, a redirect that we do not follow, a caller's values. */
const NEUTRAL = new Set([
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_AUTH_FAILED',
  'UPSTREAM_REDIRECT_BLOCKED',
  'UPSTREAM_REJECTED',
])

/** What an attempt with this code says of its upstream's health; undefined: its answer was data. */
export function resultOf(
  code: string | undefined,
  { source, isPlain }: { source: 'call' | 'probe'; isPlain: boolean },
): AttemptRecord['result'] {
  if (code === undefined) return 'ok'
  if (FAILURES.has(code)) return !isPlain && OF_THE_ANSWER.has(code) ? 'none' : 'fail'
  // A probe has nobody's values: what refuses it refuses the gateway.
  if (code === 'UPSTREAM_REJECTED' && source === 'probe') return 'fail'
  // "No such thing" is an answer.
  return NEUTRAL.has(code) ? 'none' : 'ok'
}
