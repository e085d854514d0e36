import { GatewayError } from '../errors.ts'
import type { CallTimes, ReplyHead } from '../queue/frame.ts'

/** The headers of a call's answer that come from its reply. */
export function replyHeaders(
  { times, cacheStatus, ageSeconds }: ReplyHead,
  admissionMs: number,
): Record<string, string> {
  return {
    'server-timing': serverTiming(admissionMs, times),
    ...(cacheStatus === undefined ? {} : { 'cache-status': cacheStatus }),
    ...(ageSeconds === undefined ? {} : { age: String(ageSeconds) }),
  }
}

/** The failure that a reply tells of. */
export function replyError({ code, message, retryAfterMs }: ReplyHead): GatewayError {
  return new GatewayError(code ?? 'INTERNAL_ERROR', {
    ...(message === undefined ? {} : { message }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** Server-Timing (W3C): where the call's time went, milliseconds. */
function serverTiming(admissionMs: number, { queueMs, permitMs, upstreamMs, attempts }: CallTimes): string {
  const parts = [
    `admission;dur=${admissionMs.toFixed(1)}`,
    `queue;dur=${queueMs.toFixed(1)}`,
    `permit;dur=${permitMs.toFixed(1)}`,
    `upstream;dur=${upstreamMs.toFixed(1)}`,
    `attempts;desc="${attempts}"`,
  ]
  return parts.join(', ')
}
