import { ReplyError } from 'ioredis'
import { DependencyError } from '../errors.ts'

/**
 * Codes with which Redis refuses a write because it is full, or because it cannot write to its
 * disk.
 */
const FULL = new Set(['OOM', 'MISCONF'])

/**
 * Redis refused a command or did not answer it. Connections throw no other errors.
 *
 * Admission fails closed: without Redis there are no limits and no queue, so callers get 503 at
 * once.
 */
export class RedisError extends DependencyError {
  /**
   * Error code of the Redis protocol (`OOM`, `NOSCRIPT`, `READONLY`, …); undefined if there was no
   * answer.
   */
  readonly replyCode: string | undefined
  /** False if the command never left this process. */
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
 * Whether a command was sent and not answered. Redis may have run it, or may still run it. A
 * refused command has done nothing.
 */
export function isUnacknowledged(error: unknown): boolean {
  return error instanceof RedisError && error.wasSent && error.replyCode === undefined
}
