import type { AttemptRecord } from '../../src/health/record.ts'

/** The code of a redirect. If another request follows the redirect, it is no failure. */
export const REDIRECT = 'UPSTREAM_REDIRECT_BLOCKED'

/** What an upstream that works does not answer to a request without undeclared parameters. */
const FAILURES = new Set([
  'UPSTREAM_ERROR',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_INVALID_RESPONSE',
  'UPSTREAM_TOO_LARGE',
  'UPSTREAM_REDIRECT_BLOCKED',
])

/** Answers that undeclared parameters may have caused. */
const OF_THE_ANSWER = new Set([
  'UPSTREAM_INVALID_RESPONSE',
  'UPSTREAM_TOO_LARGE',
  'UPSTREAM_REDIRECT_BLOCKED',
  'UPSTREAM_NOT_FOUND',
])

/** About the values of a call. A probe has nobody's values: the upstream refuses the gateway. */
const ABOUT_VALUES = new Set(['UPSTREAM_REJECTED', 'UPSTREAM_NOT_FOUND'])

/** Our rate, our key, a caller's values: they say nothing of health. */
const NEUTRAL = new Set(['UPSTREAM_RATE_LIMITED', 'UPSTREAM_AUTH_FAILED', 'UPSTREAM_REJECTED'])

/** What a failure says of the health of its upstream. */
export function resultOf(
  code: string,
  { source, isPlain }: { source: 'call' | 'probe'; isPlain: boolean },
): AttemptRecord['result'] {
  if (!isPlain && OF_THE_ANSWER.has(code)) return 'none'
  if (FAILURES.has(code) || (source === 'probe' && ABOUT_VALUES.has(code))) return 'fail'
  return NEUTRAL.has(code) ? 'none' : 'ok'
}

/**
 * Whether a source that works refused the gateway itself: its rate or its key, and nothing that a
 * caller added.
 */
export function isOfGateway({ code, isPlain, source }: Pick<AttemptRecord, 'code' | 'isPlain' | 'source'>): boolean {
  return (code === 'UPSTREAM_RATE_LIMITED' || code === 'UPSTREAM_AUTH_FAILED') && (isPlain || source === 'probe')
}
