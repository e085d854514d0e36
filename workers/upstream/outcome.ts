import { transcode } from 'node:buffer'
import type { ExampleOrigin } from '../../src/catalog/endpoint.ts'
import type { ResponseClass } from '../../src/catalog/response-class.ts'
import type { ErrorCode } from '../../src/errors.ts'
import { hasReached, type Reach } from '../../src/queue/verdict.ts'
import type { AttemptError } from '../errors/attempt-error.ts'

/** `body` as it goes to the caller. */
export interface Success {
  body: Buffer
  /** Set if it was just mapped: storage time may depend on it. */
  data?: Record<string, unknown>
  /** See `ReplyHead`. */
  recordedFor?: string | undefined
  /** See `ReplyHead`. */
  example?: ExampleOrigin | undefined
  /** The fallback source of the API answered. */
  isFromFallback?: true | undefined
}

export interface Failure {
  code: ErrorCode
  message?: string | undefined
  /** Replaces the hint of the code. */
  hint?: string | undefined
  retryAfterMs?: number | undefined
  /** How far the requests got that failed. Absent: as far as the call's progress says. */
  reach?: Reach
  /** The request had less time than an attempt has, because its call was about to end. */
  isCutShort?: boolean
  /** For the log alone. */
  cause?: unknown
}

export type Outcome = Success | Failure

export function isFailure(outcome: Outcome): outcome is Failure {
  return 'code' in outcome
}

/**
 * Whether an outcome is about one call's account or deadline, so that identical calls must try for
 * themselves: the call was refused, lost its place in the wait queue, or had too little time left.
 */
export function isOfOneCall(outcome: Outcome): boolean {
  if (!isFailure(outcome)) return false
  const { code, reach, isCutShort } = outcome
  const isEvicted = code === 'UPSTREAM_CAP_EXHAUSTED' || (code === 'UPSTREAM_RATE_LIMITED' && isUnsent(outcome))
  return reach === 'refused' || isCutShort === true || isEvicted
}

/** It is certain that no request was sent. */
export function isUnsent({ reach }: Failure): boolean {
  return reach !== undefined && !hasReached(reach, 'maybe-sent')
}

export function isCutShort(outcome: Outcome): boolean {
  return isFailure(outcome) && outcome.isCutShort === true
}

/** How far a call's request is, which decides the outcome at the deadline. */
export interface CallProgress {
  /** How far the requests got. */
  reach: Reach
  /**
   * An attempt goes on, its connection included. If the end of the call ends an attempt, this stays
   * true, because it decides the outcome at the deadline.
   */
  isUnderWay?: boolean
  /** How the last attempt failed. */
  lastFailure?: AttemptError | undefined
  /** Of the coalesced request that this call shares. */
  ofRequest?: CallProgress
  /**
   * Settles with the coalesced request that goes on for others in the call's place of the wait
   * queue.
   */
  sharedRequestEnd?: Promise<unknown>
}

/** The progress that counts: of the request that the call shares, or else its own. */
export function progressOf(progress: CallProgress): CallProgress {
  return progress.ofRequest ?? progress
}

/** The body of a success, `{"status":"success","data":…}`. */
export function dataOutcome(data: Record<string, unknown>): Outcome {
  try {
    return { body: encodeUtf8(JSON.stringify({ status: 'success', data })), data }
  } catch (cause) {
    // Nested too deep to be written: the upstream's fault, not ours.
    return { code: 'UPSTREAM_INVALID_RESPONSE', cause }
  }
}

export function failureOutcome({ code, message, retryAfterMs }: ResponseClass, cause?: unknown): Failure {
  return { code, message, retryAfterMs, cause }
}

/**
 * The hint of UPSTREAM_ERROR is to retry, which is of no use if the address has moved or the source
 * refuses what is correct.
 */
const LASTING_HINT = 'Report it to the operator, or use another API, because a retry gets the same answer'

/** What a failed attempt is to the caller. */
export function attemptFailure(error: AttemptError): Failure {
  const { code, publicMessage: message, reach, isRetryable, isCutShort, cause, retryAfterMs } = error
  const hint = code === 'UPSTREAM_ERROR' && !isRetryable ? LASTING_HINT : undefined
  return { code, hint, message, retryAfterMs, reach, isCutShort, cause }
}

/** `Buffer.from` encodes shorter texts as quickly. Characters, with wide characters and without. */
const WIDE_LENGTH_MIN = 2_048
const NARROW_LENGTH_MIN = 8_192

/** Longer texts are left to `Buffer.from`, characters: the scratch space stays. */
const LENGTH_MAX = 2 * 1_024 * 1_024

/**
 * V8 keeps a text without them in one byte a character, and answers this test without reading it.
 */
const WIDE = /[\u0100-\uffff]/

let scratch = Buffer.alloc(0)

/**
 * The bytes of `Buffer.from(text)`, which first measures a text, and both one character at a time
 * if any character is wide: it takes five times as long.
 *
 * @throws Error for lone surrogates, which JSON.stringify never makes
 */
export function encodeUtf8(text: string): Buffer {
  if (text.length < WIDE_LENGTH_MIN || text.length > LENGTH_MAX) return Buffer.from(text)
  const isWide = WIDE.test(text)
  if (!isWide && text.length < NARROW_LENGTH_MIN) return Buffer.from(text)
  // Also enough for UTF-8 without wide characters.
  const bytes = 2 * text.length
  if (scratch.length < bytes) scratch = Buffer.allocUnsafeSlow(bytes)
  const written = scratch.subarray(0, scratch.write(text, 0, bytes, isWide ? 'utf16le' : 'utf8'))
  return isWide ? transcode(written, 'utf16le', 'utf8') : Buffer.from(written)
}
