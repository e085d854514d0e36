import type { RedisConnection } from '../redis/connection.ts'
import {
  type Counts,
  emptyHistogram,
  type Minute,
  QUARTER_MS,
  quantile,
  readAccounts,
  readQuarter,
  readSlot,
  SLOT_MS,
  sumOfCounts,
} from '../telemetry/minute-stats.ts'
import { countOutcomes, outcomeClass } from './outcome-class.ts'
import type { AccountRow, LastHour, Outcomes, RecentCalls, UpstreamRow } from './snapshot.ts'

const MINUTE_MS = 60_000
const MINUTES = 60
const QUARTERS = 96

/** Period for which the outcomes and the latency of a row are computed, milliseconds. */
const RECENT_MS = 300_000

/**
 * After this time the counts of a slot are final, milliseconds. Processes write their counts each
 * second, and repeat counts that Redis did not accept.
 */
const GROWS_MS = 70_000

/** Most errors and accounts that are shown. */
const ERRORS_MAX = 20
const ACCOUNTS_MAX = 10

/** What callers got recently. */
export interface RecentCounts {
  /** The minutes of the last hour, the oldest first. */
  minutes: Minute[]
  /** The slots of the last minutes, the oldest first. */
  slots: Counts[]
  /** The time of Redis at the reading, milliseconds. */
  now: number
}

/**
 * Reads the last hour of the whole fleet. Final counts are read once; the newest slots and accounts
 * are read each time.
 */
export class LastHourReader {
  readonly #redis: RedisConnection
  #minutes = new Map<number, Minute>()
  #slots = new Map<number, Counts>()

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  async read(now: number): Promise<RecentCounts> {
    const isFinal = (end: number): boolean => now - end > GROWS_MS
    const newest = Math.floor(now / MINUTE_MS) * MINUTE_MS
    const starts = Array.from({ length: MINUTES }, (_, index) => newest - (MINUTES - 1 - index) * MINUTE_MS)
    const slots = new Map<number, Counts>()
    const readOnce = async (at: number): Promise<Counts> => {
      const slot = this.#slots.get(at) ?? (await readSlot(this.#redis, at))
      slots.set(at, slot)
      return slot
    }
    const minutes = await Promise.all(
      starts.map(async (at) => {
        const known = this.#minutes.get(at)
        if (known && newest - at > RECENT_MS) return known
        const inMinute = Array.from({ length: MINUTE_MS / SLOT_MS }, (_, index) => at + index * SLOT_MS)
        const [accounts, ...counts] = await Promise.all([
          known?.accounts ?? readAccounts(this.#redis, at),
          ...inMinute.filter((slotAt) => slotAt <= now).map(readOnce),
        ])
        return known ?? { ...sumOfCounts(at, counts), accounts }
      }),
    )
    this.#minutes = new Map(minutes.filter(({ at }) => isFinal(at + MINUTE_MS)).map((minute) => [minute.at, minute]))
    const recent = [...slots.values()].filter(({ at }) => now - at < RECENT_MS + MINUTE_MS + SLOT_MS)
    this.#slots = new Map(recent.filter(({ at }) => isFinal(at + SLOT_MS)).map((slot) => [slot.at, slot]))
    return { minutes, slots: recent.sort((a, b) => a.at - b.at), now }
  }
}

/** Reads the quarters of the last day. Each quarter whose counts are final is read once. */
export class LastDayReader {
  readonly #redis: RedisConnection
  #quarters = new Map<number, Counts>()

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  /**
   * The quarters, the oldest first; the last is the present quarter.
   * @throws what Redis throws
   */
  async read(now: number): Promise<Counts[]> {
    const newest = Math.floor(now / QUARTER_MS) * QUARTER_MS
    const starts = Array.from({ length: QUARTERS }, (_, index) => newest - (QUARTERS - 1 - index) * QUARTER_MS)
    const quarters = await Promise.all(starts.map((at) => this.#quarters.get(at) ?? readQuarter(this.#redis, at)))
    const isFinal = ({ at }: Counts): boolean => now - at - QUARTER_MS > GROWS_MS
    this.#quarters = new Map(quarters.filter(isFinal).map((quarter) => [quarter.at, quarter]))
    return quarters
  }
}

/** Calls of one API in each minute of the hour; null if there were none. */
export function hourOf(minutes: Minute[], slug: string): UpstreamRow['hour'] {
  const outcomes = minutes.map(({ calls }) =>
    countOutcomes(
      [...calls].flatMap(([key, count]) => (key.startsWith(`${slug}|`) ? [[splitKey(key).code, count] as const] : [])),
    ),
  )
  const calls = outcomes.map(({ answered, refused, failed }) => answered + refused + failed)
  if (calls.every((count) => count === 0)) return null
  const sent = minutes.map(({ upstream }) => (upstream.get(slug) ?? []).reduce((sum, count) => sum + count, 0))
  return { calls, failed: outcomes.map(({ failed }) => failed), sent }
}

/** Latency of an upstream in each step, milliseconds; null for a step without calls. */
export function latencyOf(steps: Counts[], slug: string): { median: (number | null)[]; p95: (number | null)[] } {
  const at = (share: number) => steps.map(({ upstream }) => quantile(upstream.get(slug) ?? [], share) ?? null)
  return { median: at(0.5), p95: at(0.95) }
}

/** Turns the counts of equal steps into the lines of a chart. */
export function toLastHour(minutes: Counts[]): LastHour {
  const times = (kind: 'queue' | 'upstream', share: number) =>
    minutes.map((minute) => quantile(sum([...minute[kind].values()]), share) ?? null)
  const outcomes = minutes.map(({ calls }) =>
    countOutcomes([...calls].map(([key, count]) => [splitKey(key).code, count] as const)),
  )
  return {
    at: minutes.map(({ at }) => at),
    answered: outcomes.map(({ answered }) => answered),
    refused: outcomes.map(({ refused }) => refused),
    failed: outcomes.map(({ failed }) => failed),
    queueP50: times('queue', 0.5),
    queueP95: times('queue', 0.95),
    upstreamP50: times('upstream', 0.5),
    upstreamP95: times('upstream', 0.95),
  }
}

/**
 * Error codes by API over the hour: failures before refusals, and within these the most frequent
 * first.
 */
export function toErrors(minutes: Minute[]): { slug: string; code: string; count: number }[] {
  const counts = new Map<string, number>()
  for (const { calls } of minutes) {
    for (const [key, count] of calls) counts.set(key, (counts.get(key) ?? 0) + count)
  }
  const isFailure = (code: string) => (outcomeClass(code) === 'failed' ? 1 : 0)
  return [...counts]
    .map(([key, count]) => ({ ...splitKey(key), count }))
    .filter(({ code }) => outcomeClass(code) !== 'answered')
    .sort((a, b) => isFailure(b.code) - isFailure(a.code) || b.count - a.count || a.slug.localeCompare(b.slug))
    .slice(0, ERRORS_MAX)
}

/** The accounts with the most calls over the hour, by status; without email addresses. */
export function toAccounts(minutes: Minute[]): AccountRow[] {
  const accounts = new Map<string, AccountRow>()
  for (const { accounts: counts } of minutes) {
    for (const { id, status, count } of counts) {
      const row = accounts.get(id) ?? { id, email: null, calls: 0, limited: 0, refused: 0, failed: 0 }
      row.calls += count
      if (status === 429) row.limited += count
      else if (status >= 500) row.failed += count
      else if (status >= 400) row.refused += count
      accounts.set(id, row)
    }
  }
  return [...accounts.values()].sort((a, b) => b.calls - a.calls).slice(0, ACCOUNTS_MAX)
}

/** What callers of one upstream got in the last five minutes, and in the last minute. */
export function recentOf({ slots, now }: RecentCounts, slug: string): RecentCalls {
  const recent = slots.filter(({ at }) => at + SLOT_MS > now - RECENT_MS)
  const histograms = recent.flatMap(({ upstream }) => (upstream.has(slug) ? [upstream.get(slug) ?? []] : []))
  const codes: Record<string, number> = {}
  const lastAt: Record<string, number> = {}
  let answeredAt: number | null = null
  for (const { at, calls } of recent) {
    for (const [key, count] of calls) {
      const of = splitKey(key)
      if (of.slug !== slug) continue
      const seenAt = Math.min(now, at + SLOT_MS)
      codes[of.code] = (codes[of.code] ?? 0) + count
      lastAt[of.code] = seenAt
      if (outcomeClass(of.code) === 'answered') answeredAt = seenAt
    }
  }
  return {
    codes,
    lastAt,
    answeredAt,
    ...countOutcomes(Object.entries(codes)),
    upstreamP95: quantile(sum(histograms), 0.95) ?? null,
    lastMinute: lastMinuteOf({ slots, now }, slug),
  }
}

/**
 * What callers of all APIs got in the last sixty seconds. Includes APIs that have left the catalog.
 */
export function toLastMinute(counts: Pick<RecentCounts, 'slots' | 'now'>): Outcomes {
  return countOutcomes(Object.entries(lastMinuteOf(counts)))
}

/**
 * Calls of the last sixty seconds by code, for one API or for all. The sixty seconds rarely begin
 * with a slot, so only a part of the oldest slot counts.
 */
function lastMinuteOf({ slots, now }: Pick<RecentCounts, 'slots' | 'now'>, slug?: string): Record<string, number> {
  const codes: Record<string, number> = {}
  for (const { at, calls } of slots) {
    const part = Math.min(1, (at + SLOT_MS - (now - MINUTE_MS)) / SLOT_MS)
    if (part <= 0) continue
    for (const [key, count] of calls) {
      const of = splitKey(key)
      if (slug === undefined || of.slug === slug) codes[of.code] = (codes[of.code] ?? 0) + count * part
    }
  }
  return Object.fromEntries(Object.entries(codes).map(([code, count]) => [code, Math.round(count)]))
}

function splitKey(key: string): { slug: string; code: string } {
  const [slug = '', code = ''] = key.split('|')
  return { slug, code }
}

function sum(histograms: number[][]): number[] {
  const total = emptyHistogram()
  for (const histogram of histograms)
    for (const [index, count] of histogram.entries()) total[index] = (total[index] ?? 0) + count
  return total
}
