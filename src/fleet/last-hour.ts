import type { RedisConnection } from '../redis/connection.ts'
import { emptyHistogram, type Minute, quantile, readMinute } from '../telemetry/minute-stats.ts'
import { countOutcomes, outcomeClass } from './outcome-class.ts'
import type { AccountRow, LastHour, RecentCalls } from './snapshot.ts'

const MINUTE_MS = 60_000
const MINUTES = 60

/** Over how many minutes a row's outcomes and its latency are taken. */
const RECENT_MINUTES = 5

/** Errors and accounts that are shown. */
const ERRORS_MAX = 20
const ACCOUNTS_MAX = 10

/** The last hour of the whole fleet: closed minutes are read once, the two youngest each time. */
export class LastHourReader {
  readonly #redis: RedisConnection
  #minutes = new Map<number, Minute>()

  constructor(redis: RedisConnection) {
    this.#redis = redis
  }

  /** The minutes of the last hour, oldest first. */
  async read(now: number): Promise<Minute[]> {
    const newest = Math.floor(now / MINUTE_MS) * MINUTE_MS
    const starts = Array.from({ length: MINUTES }, (_, index) => newest - (MINUTES - 1 - index) * MINUTE_MS)
    const minutes = await Promise.all(
      starts.map((at) => {
        const known = newest - at > MINUTE_MS ? this.#minutes.get(at) : undefined
        return known ?? readMinute(this.#redis, at)
      }),
    )
    // One that had not ended when it was read still grows, however long ago that was.
    this.#minutes = new Map(minutes.filter(({ at }) => newest - at > MINUTE_MS).map((minute) => [minute.at, minute]))
    return minutes
  }
}

/** The hour as lines of a chart. */
export function toLastHour(minutes: Minute[]): LastHour {
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

/** Error codes by API over the hour: failures before refusals, then the most frequent first. */
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

/** The accounts with most calls over the hour, by status of the answer; without their addresses. */
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

/** What callers of one upstream got in the last minutes. */
export function recentOf(minutes: Minute[], slug: string): RecentCalls {
  const recent = minutes.slice(-RECENT_MINUTES)
  const codes = codesOf(recent, slug)
  const histograms = recent.flatMap(({ upstream }) => {
    const histogram = upstream.get(slug)
    return histogram ? [histogram] : []
  })
  return {
    codes,
    ...countOutcomes(Object.entries(codes)),
    upstreamP95: quantile(sum(histograms), 0.95) ?? null,
    lastMinute: codesOf(minutes.slice(-2, -1), slug),
  }
}

function codesOf(minutes: Minute[], slug: string): Record<string, number> {
  const codes: Record<string, number> = {}
  for (const { calls } of minutes) {
    for (const [key, count] of calls) {
      const of = splitKey(key)
      if (of.slug === slug) codes[of.code] = (codes[of.code] ?? 0) + count
    }
  }
  return codes
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
