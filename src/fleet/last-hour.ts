import type { RedisConnection } from '../redis/connection.ts'
import { emptyHistogram, type Minute, quantile, readMinute } from '../telemetry/minute-stats.ts'
import type { LastHour, UpstreamRow } from './snapshot.ts'

const MINUTE_MS = 60_000
const MINUTES = 60

/** Over how many minutes a row's share of failures and its latency are taken. */
const RECENT_MINUTES = 5

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
    this.#minutes = new Map(minutes.map((minute) => [minute.at, minute]))
    return minutes
  }
}

/** The hour as lines of a chart. */
export function toLastHour(minutes: Minute[]): LastHour {
  const times = (kind: 'queue' | 'upstream', share: number) =>
    minutes.map((minute) => quantile(sum([...minute[kind].values()]), share) ?? null)
  const counts = (isOk: boolean) =>
    minutes.map(({ calls }) => countCalls(calls, (_slug, code) => (code === 'OK') === isOk))
  return {
    at: minutes.map(({ at }) => at),
    ok: counts(true),
    failed: counts(false),
    queueP50: times('queue', 0.5),
    queueP95: times('queue', 0.95),
    upstreamP50: times('upstream', 0.5),
    upstreamP95: times('upstream', 0.95),
  }
}

/** Error codes by API over the hour, most frequent first. */
export function toErrors(minutes: Minute[]): { slug: string; code: string; count: number }[] {
  const counts = new Map<string, number>()
  for (const { calls } of minutes) {
    for (const [key, count] of calls) if (!key.endsWith('|OK')) counts.set(key, (counts.get(key) ?? 0) + count)
  }
  return [...counts]
    .map(([key, count]) => {
      const [slug = '', code = ''] = key.split('|')
      return { slug, code, count }
    })
    .sort((a, b) => b.count - a.count || a.slug.localeCompare(b.slug))
}

/** What the last minutes say of one upstream. */
export function recentOf(
  minutes: Minute[],
  slug: string,
): Pick<UpstreamRow, 'perMinute' | 'errorShare' | 'upstreamP95'> {
  const recent = minutes.slice(-RECENT_MINUTES)
  const count = (isWanted: (code: string) => boolean) =>
    recent.reduce((total, { calls }) => total + countCalls(calls, (of, code) => of === slug && isWanted(code)), 0)
  const all = count(() => true)
  const failed = count((code) =>
    /^(UPSTREAM_(?!NOT_FOUND|REJECTED)|INTERNAL|OVERLOADED|DEADLINE|DEPENDENCY)/.test(code),
  )
  const histogram = sum(
    recent.flatMap(({ upstream }) => upstream.get(slug) ?? []).length === 0
      ? []
      : recent.map(({ upstream }) => upstream.get(slug) ?? emptyHistogram()),
  )
  const lastFull = minutes.at(-2)
  return {
    perMinute: lastFull ? countCalls(lastFull.calls, (of) => of === slug) : 0,
    errorShare: all === 0 ? 0 : failed / all,
    upstreamP95: quantile(histogram, 0.95) ?? null,
  }
}

function countCalls(calls: Map<string, number>, isWanted: (slug: string, code: string) => boolean): number {
  let total = 0
  for (const [key, count] of calls) {
    const [slug = '', code = ''] = key.split('|')
    if (isWanted(slug, code)) total += count
  }
  return total
}

function sum(histograms: number[][]): number[] {
  const total = emptyHistogram()
  for (const histogram of histograms)
    for (const [index, count] of histogram.entries()) total[index] = (total[index] ?? 0) + count
  return total
}
