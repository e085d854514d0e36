import type { Api } from '../../catalog/catalog.ts'
import { sourceName } from '../../catalog/fallback.ts'
import type { Terms } from '../../catalog/terms.ts'
import { GatewayError } from '../../errors.ts'
import type { CallJob } from '../../queue/call-job.ts'
import type { ReplyHead } from '../../queue/reply-head.ts'

/**
 * The headers of a call's answer that come from its reply. `Server-Timing` (W3C) says where the
 * call's time went, in milliseconds. The kept result of an asynchronous call has no `admission`:
 * the 202 stated it.
 */
export function replyHeaders(
  { times, cacheStatus, ageSeconds, recordedFor, example }: ReplyHead,
  admissionMs?: number,
): Record<string, string> {
  const { queueMs, permitMs, upstreamMs, attempts } = times
  const timing = [
    ...(admissionMs === undefined ? [] : [`admission;dur=${admissionMs.toFixed(1)}`]),
    `queue;dur=${queueMs.toFixed(1)}`,
    `permit;dur=${permitMs.toFixed(1)}`,
    `upstream;dur=${upstreamMs.toFixed(1)}`,
    `attempts;desc="${attempts}"`,
  ]
  return {
    'server-timing': timing.join(', '),
    ...(cacheStatus === undefined ? {} : { 'cache-status': cacheStatus }),
    ...(ageSeconds === undefined ? {} : { age: String(ageSeconds) }),
    ...(recordedFor === undefined ? {} : { 'x-gateway-recorded-for': recordedFor }),
    ...(example === undefined ? {} : { 'x-gateway-example': example }),
  }
}

/**
 * Headers of every answer to a call. No cache may store an answer, because shared caches do not
 * treat `X-Api-Key` like `Authorization` (RFC 9111, 3.5).
 */
export const PRIVATE_ANSWER = { 'cache-control': 'private, no-store', 'x-content-type-options': 'nosniff' }

/** Server-Timing of a call without a reply: it was refused, or it had not ended after `queueMs`. */
export function timingWithoutReply(admissionMs: number, queueMs = 0): string {
  return `admission;dur=${admissionMs.toFixed(1)}, queue;dur=${queueMs.toFixed(1)}, upstream;dur=0.0`
}

/** The error in a reply. */
export function replyError({ code, message, hint, retryAfterMs }: ReplyHead): GatewayError {
  return new GatewayError(code ?? 'INTERNAL_ERROR', { message, hint, retryAfterMs })
}

/**
 * The media type of a successful call. The upstream's own JSON has another type than our envelope.
 */
export function mediaTypeOf({ raw }: Pick<CallJob, 'raw'>): string {
  return raw ? 'application/vnd.upstream+json' : 'application/json; charset=utf-8'
}

/**
 * `Link` of an answer with data (RFC 8288): the terms of the source and the licence of its data, so
 * that the obligations travel with the data. Undefined if the source names neither.
 */
export function termsLink({ url, licence }: Terms): string | undefined {
  const links = [
    ...(url === undefined ? [] : [`<${url}>; rel="terms-of-service"`]),
    ...(licence === undefined ? [] : [`<${licence}>; rel="license"`]),
  ]
  return links.length === 0 ? undefined : links.join(', ')
}

/**
 * `Link` if an API has two sources: the source that answered, with its terms and licence. `via`
 * (RFC 4287, 4.2.7.2) names the source.
 */
export function sourceLink(api: Api, { isFromFallback }: Pick<ReplyHead, 'isFromFallback'>): string {
  const { upstream } = (isFromFallback && api.fallback) || api
  const { terms, baseUrl } = upstream
  const via = `<${terms.url ?? baseUrl}>; rel="via"; title="${sourceName(upstream)}"`
  return [termsLink(terms), via].filter(Boolean).join(', ')
}
