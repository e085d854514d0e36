import { ERRORS, type ErrorCode } from '../errors.ts'
import type { Outcomes } from './snapshot.ts'

/**
 * Codes that count as answers: the upstream was reached, and says that the thing does not exist or
 * that it refuses the values.
 */
const ANSWERS = new Set(['OK', 'UPSTREAM_NOT_FOUND', 'UPSTREAM_REJECTED'])

/**
 * The class of a call's code: answered, refused because of the request (4xx), or failed because of
 * the upstream or the gateway (5xx).
 */
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
