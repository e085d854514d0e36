import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'

/** Upper bounds of the time buckets, milliseconds; a last bucket holds what took longer. */
export const TIME_BOUNDS_MS = [
  5, 10, 20, 50, 100, 200, 350, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500, 10_000, 15_000, 30_000,
]

const MINUTE_MS = 60_000
const FLUSH_MS = 1_000
const KEPT_SECONDS = 7_200

/** Fields that one process keeps while Redis is away; beyond them nothing is added. */
const FIELDS_MAX = 20_000

/** An ended call, for the minute it ended in. */
export interface CompletedCall {
  slug: string
  /** `OK` or a code of the error table. */
  code: string
  queueMs?: number | undefined
  upstreamMs?: number | undefined
}

/**
 * Counts calls per minute over all API nodes, for the console's last hour: kept in memory and added to Redis each
 * second, off the path of any call. What a process that dies had not written yet, at most a second, is lost.
 */
export class MinuteStats {
  readonly #redis: RedisConnection
  readonly #log: Log
  #counts = new Map<string, Map<string, number>>()
  #timer: NodeJS.Timeout | undefined

  constructor(redis: RedisConnection, log: Log) {
    this.#redis = redis
    this.#log = log
  }

  open(): void {
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  add({ slug, code, queueMs, upstreamMs }: CompletedCall): void {
    const key = minuteKey(Date.now())
    const counts = this.#counts.get(key) ?? new Map<string, number>()
    this.#counts.set(key, counts)
    increment(counts, `c|${slug}|${code}`, 1)
    if (queueMs !== undefined) increment(counts, `q|${slug}|${bucketOf(queueMs)}`, 1)
    if (upstreamMs !== undefined) increment(counts, `u|${slug}|${bucketOf(upstreamMs)}`, 1)
  }

  /** Adds what was counted to Redis; what it does not take is tried again. */
  async flush(): Promise<void> {
    if (this.#counts.size === 0 || this.#redis.status !== 'ready') return
    const flushed = this.#counts
    this.#counts = new Map()
    for (const [key, counts] of flushed) {
      const pipeline = this.#redis.pipeline()
      for (const [field, count] of counts) pipeline.hincrby(key, field, count)
      pipeline.expire(key, KEPT_SECONDS)
      try {
        await pipeline.exec()
      } catch (error) {
        this.#log.debug({ err: error }, 'minute not written')
        const kept = this.#counts.get(key) ?? new Map<string, number>()
        this.#counts.set(key, kept)
        for (const [field, count] of counts) if (kept.size < FIELDS_MAX) increment(kept, field, count)
      }
    }
  }
}

function increment(counts: Map<string, number>, field: string, by: number): void {
  counts.set(field, (counts.get(field) ?? 0) + by)
}

function bucketOf(ms: number): number {
  const index = TIME_BOUNDS_MS.findIndex((bound) => ms <= bound)
  return index < 0 ? TIME_BOUNDS_MS.length : index
}

function minuteKey(epochMs: number): string {
  return keys.minuteStats(Math.floor(epochMs / MINUTE_MS))
}

/** One minute of the whole fleet. */
export interface Minute {
  /** Start, milliseconds since the epoch. */
  at: number
  /** Calls by `slug|code`. */
  calls: Map<string, number>
  /** Calls per time bucket, by slug. */
  queue: Map<string, number[]>
  upstream: Map<string, number[]>
}

/** Reads the minute that holds an instant. */
export async function readMinute(redis: RedisConnection, epochMs: number): Promise<Minute> {
  const minute: Minute = {
    at: Math.floor(epochMs / MINUTE_MS) * MINUTE_MS,
    calls: new Map(),
    queue: new Map(),
    upstream: new Map(),
  }
  for (const [field, value] of Object.entries(await redis.hgetall(minuteKey(epochMs)))) {
    const [kind, slug = '', rest = ''] = field.split('|')
    if (kind === 'c') minute.calls.set(`${slug}|${rest}`, Number(value))
    else addToBucket(kind === 'q' ? minute.queue : minute.upstream, slug, Number(rest), Number(value))
  }
  return minute
}

function addToBucket(histograms: Map<string, number[]>, slug: string, bucket: number, count: number): void {
  const histogram = histograms.get(slug) ?? emptyHistogram()
  histogram[bucket] = (histogram[bucket] ?? 0) + count
  histograms.set(slug, histogram)
}

export function emptyHistogram(): number[] {
  return Array.from({ length: TIME_BOUNDS_MS.length + 1 }, () => 0)
}

/** A quantile of a histogram over `TIME_BOUNDS_MS`, taken evenly within its bucket; undefined when it is empty. */
export function quantile(histogram: number[], share: number): number | undefined {
  const total = histogram.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const rank = total * share
  let below = 0
  for (const [index, bound] of TIME_BOUNDS_MS.entries()) {
    const count = histogram[index] ?? 0
    const lower = TIME_BOUNDS_MS[index - 1] ?? 0
    if (count > 0 && below + count >= rank) return lower + ((bound - lower) * (rank - below)) / count
    below += count
  }
  return TIME_BOUNDS_MS.at(-1)
}
