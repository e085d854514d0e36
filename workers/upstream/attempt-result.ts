import type { AttemptRecord } from '../../src/health/record.ts'

const FAILURES = new Set(['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT', 'UPSTREAM_INVALID_RESPONSE', 'UPSTREAM_TOO_LARGE'])

/** Failures that undeclared parameters may have caused. */
const OF_THE_ANSWER = new Set(['UPSTREAM_INVALID_RESPONSE', 'UPSTREAM_TOO_LARGE'])

/** Our rate, our key, a redirect that we do not follow, a caller's values: they say nothing of health. */
const NEUTRAL = new Set([
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_AUTH_FAILED',
  'UPSTREAM_REDIRECT_BLOCKED',
  'UPSTREAM_REJECTED',
])

/** Undefined code: the answer was data. */
export function resultOf(
  code: string | undefined,
  { source, isPlain }: { source: 'call' | 'probe'; isPlain: boolean },
): AttemptRecord['result'] {
  if (code === undefined) return 'ok'
  if (FAILURES.has(code)) return !isPlain && OF_THE_ANSWER.has(code) ? 'none' : 'fail'
  // A probe has nobody's values: the refusal is for the gateway.
  if (code === 'UPSTREAM_REJECTED' && source === 'probe') return 'fail'
  return NEUTRAL.has(code) ? 'none' : 'ok'
}
