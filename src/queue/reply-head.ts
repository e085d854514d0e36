import type { ErrorCode } from '../errors.ts'

export interface ReplyHead {
  id: string
  /** Undefined for a success. */
  code?: ErrorCode
  message?: string
  retryAfterMs?: number
  /** The call was refused before anything was sent for it: it costs its account nothing. */
  isRefused?: true
  /** A request that a cancelled call waited for was under way, its own or a shared one; or a worker that was lost may have sent one. */
  wasSent?: true
  /** Why it failed, in a few words for the log: `HTTP 500`, `DNS: no such host`. */
  cause?: string
  /** Key of a body that was too large for the stream. */
  bodyKey?: string
  /** The account's index of such bodies, and the member of this one. */
  bodyIndex?: string
  bodyMember?: string
  /** Account under which the outcome is kept with its body: this reply only announces it. */
  storedFor?: string
  /** `storedFor` as the version before writes it. */
  isStored?: true
  times: CallTimes
  /** As `Cache-Status` says it; undefined where no cache was read. */
  cacheStatus?: string
  ageSeconds?: number
  /** Parameters of the recording that answers a test call which has others, as a query string. */
  recordedFor?: string
  /** The fallback source of the API answered. */
  isFromFallback?: true
  /** How long the answer is stored and fresh, milliseconds: identical calls need no request for so long. */
  freshMs?: number
  /** How many more requests the call's cap had room for at its worker's last poll; absent: not known, or none. */
  room?: number
}

export function wasRequestSent({ times, wasSent }: Pick<ReplyHead, 'times' | 'wasSent'>): boolean {
  return wasSent === true || times.attempts > 0
}

export interface Reply {
  head: ReplyHead
  body: Buffer
}

/** Where a call's time went, milliseconds. */
export interface CallTimes {
  queueMs: number
  /** Waiting for the upstream's cap. */
  permitMs: number
  upstreamMs: number
  attempts: number
}
