import type { UpstreamRow } from './snapshot.ts'
import { countOf, percent } from './words.js'

/** A single call fails now and then. Fewer failures in five minutes than this are no problem. */
const COUNT_MIN = 3

/**
 * From this part of an API's calls on its callers count as failing, whatever the other calls get.
 */
const SHARE_MIN = 0.05

/** Without such a failure for so long a problem may be over, milliseconds. */
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

/** Whether the source has answered after a moment, to a caller or to a probe. */
export function hasAnswered({ recent, health }: UpstreamRow, at: number): boolean {
  return Math.max(recent?.answeredAt ?? 0, health?.lastFailure === null ? (health.lastOkAt ?? 0) : 0) > at
}

/** How many calls of the last five minutes ended with one of some codes. */
export interface Share {
  count: number
  /**
   * Calls that were answered or failed: an account that is refused a thousand times must not hide
   * that others fail.
   */
  all: number
  /** When the last of them ended; 0 for none. Milliseconds since the epoch. */
  lastAt: number
  /** More than a call now and then, and more than a twentieth of all. */
  isMany: boolean
}

/** The part of an API's recent calls that ended with one of these codes. */
export function shareOf(codes: readonly string[], { recent }: Pick<UpstreamRow, 'recent'>): Share {
  const count = codes.reduce((sum, code) => sum + (recent?.codes[code] ?? 0), 0)
  const all = recent === null ? 0 : recent.answered + recent.failed
  const lastAt = Math.max(0, ...codes.map((code) => recent?.lastAt[code] ?? 0))
  return { count, all, lastAt, isMany: isMany({ count, all }) }
}

/** More than a call now and then, and more than a twentieth of all. */
export function isMany({ count, all }: Pick<Share, 'count' | 'all'>): boolean {
  return count >= COUNT_MIN && count / all > SHARE_MIN
}

/** The calls of several APIs together. */
export function sumOf(shares: Share[]): Pick<Share, 'count' | 'all'> {
  const sum = { count: 0, all: 0 }
  for (const { count, all } of shares) {
    sum.count += count
    sum.all += all
  }
  return sum
}

/** `40 of 42 calls in the last 5 minutes failed (95 %)`. */
export function shareWords({ count, all }: Pick<Share, 'count' | 'all'>, became: string): string {
  return `${count} of ${countOf(all, 'call')} in the last 5 minutes ${became} (${percent(count / all)})`
}

/**
 * What a state of health adds to its line: failures of the source that go on now. Undefined for
 * none.
 */
export function sourceFailures(row: UpstreamRow, at: number): Share | undefined {
  const share = shareOf(OF_THE_SOURCE, row)
  return share.isMany && !isOver(row, share, { at, isGone: hasAnswered }) ? share : undefined
}

/** Whether no call failed so for a minute, and the cause is seen to be gone. */
export function isOver(
  row: UpstreamRow,
  { lastAt }: Share,
  { at, isGone }: { at: number; isGone: (row: UpstreamRow, lastAt: number) => boolean },
): boolean {
  return isQuiet(lastAt, at) && isGone(row, lastAt)
}

/** Whether nothing of a kind was seen for a minute. */
export function isQuiet(lastAt: number, at: number): boolean {
  return at - lastAt >= QUIET_MS
}
