import { GatewayError } from '../errors.ts'

/**
 * Runs Redis commands for a request. Admission fails closed: without Redis no limit and no queue can be kept, so the
 * caller is told 503, and at once.
 *
 * @throws GatewayError OVERLOADED when Redis is full or cannot write, else DEPENDENCY_UNAVAILABLE
 */
export async function redisCall<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause
    const isFull = cause instanceof Error && /^(OOM|MISCONF)\b/.test(cause.message)
    throw new GatewayError(isFull ? 'OVERLOADED' : 'DEPENDENCY_UNAVAILABLE', { retryAfterMs: 2_000, cause })
  }
}

/** Whether a command failed before it left: the connection was not up. */
export function wasNotSent(error: unknown): boolean {
  return error instanceof Error && error.message.includes("Stream isn't writeable")
}

/** Whether Redis said that it did nothing: it is full, cannot write to its disk, is a replica, or is still loading. */
export function wasRefused(error: unknown): boolean {
  return error instanceof Error && /^(OOM|MISCONF|READONLY|LOADING|CLUSTERDOWN|EXECABORT)\b/.test(error.message)
}
