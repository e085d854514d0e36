import type { ExampleOrigin } from '../catalog/endpoint.ts'
import type { ErrorCode } from '../errors.ts'
import { hasReached, type Reach } from './verdict.ts'

/** It travels as JSON, which leaves out what is undefined. */
export interface ReplyHead {
  id: string
  /** Undefined for success. */
  code?: ErrorCode
  message?: string | undefined
  /** Replaces the hint of the code. */
  hint?: string | undefined
  retryAfterMs?: number | undefined
  /** How far the call's own or shared requests got. Read it with `reachOf`. */
  reach?: Reach
  /**
   * `reach` in the form of the earlier version: refused, and whether a request may have been sent.
   * @until 0.4.0
   */
  isRefused?: true
  wasSent?: true
  /** Why the call failed, in a few words for the log: `HTTP 500`, `DNS: no such host`. */
  cause?: string
  /** Key of a body that was too large for the stream. */
  bodyKey?: string
  /** The account's index of such bodies, and the member of this body. */
  bodyIndex?: string
  bodyMember?: string
  /** Account under which the outcome is stored with its body. This reply only announces it. */
  storedFor?: string
  /** `storedFor` in the form of the earlier version. @until 0.4.0 */
  isStored?: true
  times: CallTimes
  /** The value for `Cache-Status`; undefined if no cache was read. */
  cacheStatus?: string | undefined
  ageSeconds?: number | undefined
  /**
   * If a recording for other parameters answers a test call: those parameters, as a query string.
   */
  recordedFor?: string | undefined
  /** The kind of example that answers a test call without a recording. */
  example?: ExampleOrigin | undefined
  /** Whether the fallback source of the API answered. */
  isFromFallback?: true | undefined
  /**
   * How long the answer stays stored and fresh, milliseconds. Identical calls need no request
   * during this time.
   */
  freshMs?: number | undefined
  /**
   * How many more requests the call's cap had room for at its worker's last poll; absent if unknown
   * or none.
   */
  room?: number | undefined
}

/**
 * How far the call's requests got, by a reply of this version or of the version before.
 * @until 0.4.0
 */
export function reachOf({ reach, isRefused, wasSent, times }: Pick<ReplyHead, ReachField | 'times'>): Reach {
  if (reach) return reach
  if (isRefused) return 'refused'
  return wasSent || times.attempts > 0 ? 'maybe-sent' : 'unsent'
}

type ReachField = 'reach' | 'isRefused' | 'wasSent'

/** How far the call's requests got, as this version and the version before read it. @until 0.4.0 */
export function reachFields(reach: Reach): Pick<ReplyHead, ReachField> {
  if (reach === 'refused') return { reach, isRefused: true }
  return hasReached(reach, 'maybe-sent') ? { reach, wasSent: true } : { reach }
}

export interface Reply {
  head: ReplyHead
  body: Buffer
}

/** The body of a failure, and of a reply whose body is stored elsewhere. */
export const NO_BODY = Buffer.alloc(0)

/** Where a call's time went, milliseconds. */
export interface CallTimes {
  queueMs: number
  /** Wait for the upstream's cap, and until an operator resumes a paused API. */
  permitMs: number
  upstreamMs: number
  attempts: number
}

/** The times of a call that no worker has run so far. */
export const NO_TIMES: Readonly<CallTimes> = { queueMs: 0, permitMs: 0, upstreamMs: 0, attempts: 0 }
