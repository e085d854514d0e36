import type { ErrorCode } from '../errors.ts'

/** What a worker tells the API node of a call besides the body. */
export interface ReplyHead {
  /** Call id. */
  id: string
  /** A failure's code; undefined for a success. */
  code?: ErrorCode
  /** Replaces the table's message. */
  message?: string
  retryAfterMs?: number
  /** Why it failed, in a few words for the log: `HTTP 500`, `DNS: no such host`. */
  cause?: string
  /** Where the body is when it was too large for the stream. */
  bodyKey?: string
  /** The account's index of such bodies, and what stands in it for this one. */
  bodyIndex?: string
  bodyMember?: string
  /** Account under which the outcome is kept, with its body: this is only the word that it is there. */
  storedFor?: string
  /** The same as the version before says it. */
  isStored?: true
  times: CallTimes
  /** What the cache did, as `Cache-Status` says it; undefined where no cache was read. */
  cacheStatus?: string
  /** Age of a stored answer, seconds. */
  ageSeconds?: number
  /** How long the answer is stored and fresh from now on, milliseconds: so long identical calls need no request. */
  freshMs?: number
}

/** What came of a call. */
export interface Reply {
  head: ReplyHead
  body: Buffer
}

/** Where a call's time went, milliseconds. */
export interface CallTimes {
  queueMs: number
  /** Waiting for the upstream's cap to allow a request. */
  permitMs: number
  upstreamMs: number
  attempts: number
}

const HEAD_LENGTH_BYTES = 4

/**
 * A head and a body as one buffer: the head's length, the head as JSON, then the body's bytes as they go to the caller.
 * Nobody parses or escapes the body on its way.
 */
export function encodeFrame(head: object, body: Buffer): Buffer {
  const headBytes = Buffer.from(JSON.stringify(head))
  const frame = Buffer.allocUnsafe(HEAD_LENGTH_BYTES + headBytes.length + body.length)
  frame.writeUInt32BE(headBytes.length)
  headBytes.copy(frame, HEAD_LENGTH_BYTES)
  body.copy(frame, HEAD_LENGTH_BYTES + headBytes.length)
  return frame
}

/** @throws Error when it is no frame */
export function decodeFrame<Head>(frame: Buffer): { head: Head; body: Buffer } {
  const end = HEAD_LENGTH_BYTES + frame.readUInt32BE()
  return { head: JSON.parse(frame.toString('utf8', HEAD_LENGTH_BYTES, end)), body: frame.subarray(end) }
}
