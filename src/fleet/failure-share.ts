import type { UpstreamRow } from './snapshot.ts'
import { countOf, percent } from './words.js'

/**
 * Least failures in five minutes that count as a problem, because a single call fails now and then.
 */
const COUNT_MIN = 3

/** Failures count as a problem if they are more than this share of an API's calls. */
const SHARE_MIN = 0.05

/** After so long without such a failure, a problem may be over, milliseconds. */
const QUIET_MS = 60_000

/** Failures that the source causes. */
export const OF_THE_SOURCE = [
  'UPSTREAM_ERROR',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_INVALID_RESPONSE',
  'OUTCOME_UNKNOWN',
  'UPSTREAM_TOO_LARGE',
  'UPSTREAM_UNAVAILABLE',
]

/** Whether the source has answered a caller or a probe after a given time. */
export function hasAnswered({ recent, health }: UpstreamRow, at: number): boolean {
  return Math.max(recent?.answeredAt ?? 0, health?.lastFailure === null ? (health.lastOkAt ?? 0) : 0) > at
}

/** Calls of the last five minutes that ended with one of some codes. */
export interface Share {
  count: number
  /**
   * Calls that were answered or failed. Refusals are not included, so that a thousand refusals of
   * one account cannot hide the failures of others.
   */
  all: number
  /** When the last such call ended, milliseconds since the epoch; 0 if there was none. */
  lastAt: number
  /** Whether they are at least `COUNT_MIN` calls and more than `SHARE_MIN` of all calls. */
  isMany: boolean
}

/** The share of an API's recent calls that ended with one of these codes. */
export function shareOf(codes: readonly string[], { recent }: Pick<UpstreamRow, 'recent'>): Share {
  const count = codes.reduce((sum, code) => sum + (recent?.codes[code] ?? 0), 0)
  const all = recent === null ? 0 : recent.answered + recent.failed
  const lastAt = Math.max(0, ...codes.map((code) => recent?.lastAt[code] ?? 0))
  return { count, all, lastAt, isMany: isMany({ count, all }) }
}

/** Whether they are at least `COUNT_MIN` calls and more than `SHARE_MIN` of all calls. */
export function isMany({ count, all }: Pick<Share, 'count' | 'all'>): boolean {
  return count >= COUNT_MIN && count / all > SHARE_MIN
}

/** Adds up the calls of several APIs. */
export function sumOf(shares: Share[]): Pick<Share, 'count' | 'all'> {
  const sum = { count: 0, all: 0 }
  for (const { count, all } of shares) {
    sum.count += count
    sum.all += all
  }
  return sum
}

/** A share in words: `40 of 42 calls in the last 5 minutes failed (95 %)`. */
export function shareWords({ count, all }: Pick<Share, 'count' | 'all'>, became: string): string {
  return `${count} of ${countOf(all, 'call')} in the last 5 minutes ${became} (${percent(count / all)})`
}

/**
 * Failures of the source that continue now, for the line about an API's health. Undefined if there
 * are none.
 */
export function sourceFailures(row: UpstreamRow, at: number): Share | undefined {
  const share = shareOf(OF_THE_SOURCE, row)
  return share.isMany && !isOver(row, share, { at, isGone: hasAnswered }) ? share : undefined
}

/** Whether no call failed in this way for a minute, and it can be seen that the cause is gone. */
export function isOver(
  row: UpstreamRow,
  { lastAt }: Share,
  { at, isGone }: { at: number; isGone: (row: UpstreamRow, lastAt: number) => boolean },
): boolean {
  return isQuiet(lastAt, at) && isGone(row, lastAt)
}

/** Whether nothing happened for `QUIET_MS`. */
export function isQuiet(lastAt: number, at: number): boolean {
  return at - lastAt >= QUIET_MS
}
