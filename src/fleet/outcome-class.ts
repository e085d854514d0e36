import { ERRORS, type ErrorCode } from '../errors.ts'
import type { Outcomes } from './snapshot.ts'

/**
 * Refusals of the upstream that are answers: it was reached, and says that it has no such thing.
 */
const ANSWERS = new Set(['OK', 'UPSTREAM_NOT_FOUND', 'UPSTREAM_REJECTED'])

/** Whose doing a call's code is: nobody's, the caller's (4xx), or the upstream's and ours (5xx). */
export function outcomeClass(code: string): keyof Outcomes {
  if (ANSWERS.has(code)) return 'answered'
  const status = Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode].status : 500
  return status < 500 ? 'refused' : 'failed'
}

export function countOutcomes(codes: Iterable<readonly [code: string, count: number]>): Outcomes {
  const outcomes: Outcomes = { answered: 0, refused: 0, failed: 0 }
  for (const [code, count] of codes) outcomes[outcomeClass(code)] += count
  return outcomes
}
