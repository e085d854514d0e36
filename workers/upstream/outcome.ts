import type { ResponseClass } from '../../src/catalog/upstream.ts'
import type { ErrorCode } from '../../src/errors.ts'

/** A success: the body as it goes to the caller. */
export interface Success {
  body: Buffer
  /** The mapped data, where they were just mapped: how long they may be stored can depend on them. */
  data?: Record<string, unknown>
}

/** A failure with a code of the table. */
export interface Failure {
  code: ErrorCode
  message?: string
  retryAfterMs?: number
  /** For the log alone. */
  cause?: unknown
}

/** What came of a call in the worker. */
export type Outcome = Success | Failure

export function isFailure(outcome: Outcome): outcome is Failure {
  return 'code' in outcome
}

/** A success in the reference envelope (SPEC section 2.7). */
export function dataOutcome(data: Record<string, unknown>): Outcome {
  try {
    return { body: Buffer.from(JSON.stringify({ status: 'success', data })), data }
  } catch (cause) {
    // Parsed, yet nested too deep to be written: the upstream's fault, not ours.
    return { code: 'UPSTREAM_INVALID_RESPONSE', cause }
  }
}

/** The failure that callers get for a class of response. */
export function failureOutcome({ code, message, retryAfterMs }: ResponseClass, cause?: unknown): Failure {
  return {
    code,
    ...(message === undefined ? {} : { message }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(cause === undefined ? {} : { cause }),
  }
}
