import type { Upstream } from '../../src/catalog/upstream.ts'
import { parseHttpDate, readRetryAfter } from './retry-after.ts'

/** What an upstream says of its own limiter in the headers of an answer. */

const RETRY_AFTER_MS_MIN = 1_000

/** A wrong header must not stop an API for days. */
export const RETRY_AFTER_MS_MAX = 3_600_000

/** For an upstream that limits without saying for how long, milliseconds. */
export const LIMIT_MS_DEFAULT = 60_000

/** Whether a refusal is about the upstream's limiter. */
export function isRateMarked(upstream: Upstream, headers: Record<string, string>): boolean {
  if (headers['retry-after'] !== undefined) return true
  const remaining = headers[upstream.rateHeaders?.remaining ?? 'x-ratelimit-remaining']
  return remaining?.trim() === '0' && isOurLimit(upstream, headers)
}

/** Whether the rate headers are about the limit that our requests count against. */
function isOurLimit({ rateHeaders }: Upstream, headers: Record<string, string>): boolean {
  if (!rateHeaders?.appliesWhen) return true
  const { header, value } = rateHeaders.appliesWhen
  return (headers[header]?.trim() ?? value) === value
}

/** From `Retry-After` (RFC 9110, 10.2.3) or the upstream's rate headers, clamped to 1 s … 1 h. */
export function requestedWaitMs(upstream: Upstream, headers: Record<string, string>, now: number): number | undefined {
  const waitMs = readRetryAfter(headers['retry-after'], answeredAt(headers, now)) ?? usedUpMs(upstream, headers, now)
  return waitMs === undefined ? undefined : Math.min(Math.max(waitMs, RETRY_AFTER_MS_MIN), RETRY_AFTER_MS_MAX)
}

/** When the upstream answered, by its own clock; `now` if it does not say. */
function answeredAt(headers: Record<string, string>, now: number): number {
  const date = parseHttpDate(headers.date ?? '')
  return date === undefined ? now : date + (wholeNumber(headers.age) ?? 0) * 1_000
}

function usedUpMs(upstream: Upstream, headers: Record<string, string>, now: number): number | undefined {
  const left = rateLeft(upstream, headers, now)
  return left?.remaining === 0 ? left.resetMs : undefined
}

/**
 * What the upstream's limiter has left by the headers of any answer, and milliseconds until it
 * resets, 0 to 1 h.
 */
export function rateLeft(
  upstream: Upstream,
  headers: Record<string, string>,
  now: number = Date.now(),
): { remaining: number; resetMs: number } | undefined {
  const rate = upstream.rateHeaders
  if (!rate || !isOurLimit(upstream, headers)) return undefined
  const remaining = wholeNumber(headers[rate.remaining])
  const reset = wholeNumber(headers[rate.reset])
  if (remaining === undefined || reset === undefined) return undefined
  const resetMs = rate.resetIs === 'seconds' ? reset * 1_000 : reset * 1_000 - answeredAt(headers, now)
  return { remaining, resetMs: Math.min(Math.max(resetMs, 0), RETRY_AFTER_MS_MAX) }
}

function wholeNumber(value: string | undefined): number | undefined {
  return value !== undefined && /^\s*\d{1,15}\s*$/.test(value) ? Number(value) : undefined
}
