import { ReplyError } from 'ioredis'
import { DependencyError } from '../errors.ts'

/**
 * Codes of the Redis protocol with which Redis refuses a write for want of room: it is full, or
 * cannot write to its disk.
 */
const FULL = new Set(['OOM', 'MISCONF'])

/**
 * A command that Redis refused, or that got no answer. Connections throw nothing else.
 *
 * Admission fails closed: without Redis no limit and no queue can be kept, so that a caller is
 * answered 503 at once.
 */
export class RedisError extends DependencyError {
  /**
   * Error code of the Redis protocol (`OOM`, `NOSCRIPT`, `READONLY`, …); undefined if no answer
   * came.
   */
  readonly replyCode: string | undefined
  /** False for a command that never left this process. */
  readonly wasSent: boolean

  constructor(cause: Error, { wasSent }: { wasSent: boolean }) {
    const replyCode = replyCodeOf(cause)
    super(replyCode !== undefined && FULL.has(replyCode) ? 'OVERLOADED' : 'DEPENDENCY_UNAVAILABLE', cause)
    this.name = 'RedisError'
    this.replyCode = replyCode
    this.wasSent = wasSent
  }
}

/** An error reply begins with its code, in capitals (RESP, simple errors). */
export function replyCodeOf(error: Error): string | undefined {
  return error instanceof ReplyError ? /^[A-Z]+/.exec(error.message)?.[0] : undefined
}

/**
 * Whether a command was sent and got no answer: Redis may have run it, or may run it yet. A refused
 * command did nothing.
 */
export function isUnacknowledged(error: unknown): boolean {
  return error instanceof RedisError && error.wasSent && error.replyCode === undefined
}
