import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import { type EndedCall, showsUpstreamTime } from './ended-call.ts'

/** Upper bounds of the time buckets, milliseconds. A last bucket holds longer times. */
const TIME_BOUNDS_MS = [
  5, 10, 20, 50, 100, 200, 350, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500, 10_000, 15_000, 30_000,
]

const MINUTE_MS = 60_000
const FLUSH_MS = 1_000
const ACCOUNTS_KEPT_SECONDS = 7_200

/**
 * Length of the slots by which calls are counted, milliseconds. They are short, so that "the last
 * minute" can be any sixty seconds.
 */
export const SLOT_MS = 10_000
const SLOTS_KEPT_SECONDS = 3_900

/** Length of the coarse steps for the chart of a day, milliseconds. */
export const QUARTER_MS = 900_000
const QUARTERS_KEPT_SECONDS = 90_000

/**
 * How often a process adds its counts to the quarter of an hour, milliseconds. A process that dies
 * loses the counts of this time from the chart of the day.
 */
const QUARTER_FLUSH_MS = 30_000

/**
 * Most fields that one process keeps while Redis is away. Beyond it, new fields are not counted.
 */
const FIELDS_MAX = 20_000

/**
 * Accounts that one process adds to a minute in each second, and accounts that a minute keeps.
 * Accounts with the most calls are preferred.
 */
const ACCOUNTS_ADDED_MAX = 50
const ACCOUNTS_KEPT_MAX = 300

/** Most fields that one command changes, because Redis serves nobody else meanwhile. */
const ADDED_TOGETHER_MAX = 500

const addCounts = loadScript(new URL('./lua/add-counts.lua', import.meta.url))

/**
 * Counts by field: `c|slug|code` (calls), `a|account|status` (accounts), `q|slug|bucket` (time in
 * the queue), `u|slug|bucket` (time at the upstream).
 */
type Fields = Map<string, number>

/**
 * Counts the calls of all API nodes for the console. The counts stay in memory and are added to
 * Redis each second, so no call waits for them. A process that dies loses at most the counts of the
 * last second.
 */
export class MinuteStats {
  readonly #redis: RedisConnection
  readonly #now: () => number
  readonly #log: Log
  /** Counts by slot. */
  #counts = new Map<number, Fields>()
  /** Counts by quarter of an hour. */
  #quarters = new Map<number, Fields>()
  #quartersAt = performance.now()
  #timer: NodeJS.Timeout | undefined

  /** @param now the time of Redis, so that all nodes count into the same slots */
  constructor({ redis, now, log }: { redis: RedisConnection; now: () => number; log: Log }) {
    this.#redis = redis
    this.#now = now
    this.#log = log
  }

  open(): void {
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#quartersAt = Number.NEGATIVE_INFINITY
    await this.flush()
  }

  /** Counts a call in the slot in which it ended. */
  add(call: Omit<EndedCall, 'mode' | 'totalMs'>): void {
    const { slug, code, accountId, status, times } = call
    const counts = fieldsOf(this.#counts, Math.floor(this.#now() / SLOT_MS))
    increment(counts, `c|${slug}|${code ?? 'OK'}`, 1)
    if (accountId !== undefined) increment(counts, `a|${accountId}|${status}`, 1)
    if (!times) return
    increment(counts, `q|${slug}|${timeBucketOf(times.queueMs)}`, 1)
    if (showsUpstreamTime(call)) increment(counts, `u|${slug}|${timeBucketOf(times.upstreamMs)}`, 1)
  }

  /** Adds the counts to Redis. Counts that Redis does not accept are kept for the next try. */
  async flush(): Promise<void> {
    if (this.#redis.status !== 'ready') return
    const flushed = this.#counts
    this.#counts = new Map()
    for (const [slot, counts] of flushed) {
      const refused = await this.#writeSlot(slot, counts)
      keep(this.#counts, slot, refused)
      const isRefused = new Set(refused.map(([field]) => field))
      const written = [...counts].filter(([field]) => !isAccount(field) && !isRefused.has(field))
      keep(this.#quarters, Math.floor((slot * SLOT_MS) / QUARTER_MS), written)
    }
    if (performance.now() - this.#quartersAt >= QUARTER_FLUSH_MS) await this.#flushQuarters()
  }

  async #flushQuarters(): Promise<void> {
    this.#quartersAt = performance.now()
    const flushed = this.#quarters
    this.#quarters = new Map()
    for (const [quarter, counts] of flushed) {
      const written = { counts: [...counts], seconds: QUARTERS_KEPT_SECONDS }
      keep(this.#quarters, quarter, await this.#write(keys.quarterStats(quarter), written))
    }
  }

  async #writeSlot(slot: number, counts: Fields): Promise<FieldCounts> {
    const accounts = [...counts].filter(([field]) => isAccount(field)).sort(([, a], [, b]) => b - a)
    const calls = [...counts].filter(([field]) => !isAccount(field))
    const [refusedCalls, refusedAccounts] = await Promise.all([
      this.#write(keys.slotStats(slot), { counts: calls, seconds: SLOTS_KEPT_SECONDS }),
      this.#write(keys.minuteAccounts(Math.floor((slot * SLOT_MS) / MINUTE_MS)), {
        counts: accounts.slice(0, ACCOUNTS_ADDED_MAX),
        seconds: ACCOUNTS_KEPT_SECONDS,
      }),
    ])
    return [...refusedCalls, ...refusedAccounts]
  }

  /** @returns the counts that Redis refused */
  async #write(key: string, { counts, seconds }: { counts: FieldCounts; seconds: number }): Promise<FieldCounts> {
    const refused: FieldCounts = []
    for (let from = 0; from < counts.length; from += ADDED_TOGETHER_MAX) {
      const added = counts.slice(from, from + ADDED_TOGETHER_MAX)
      const isOfAccounts = added.every(([field]) => isAccount(field))
      const fields = added.flatMap(([field, count]) => [isOfAccounts ? field.slice(2) : field, count])
      try {
        await addCounts.run(this.#redis, [key], [seconds, isOfAccounts ? ACCOUNTS_KEPT_MAX : '', ...fields])
      } catch (error) {
        this.#log.debug({ err: error }, 'failed to write some of the counts of calls')
        refused.push(...added)
      }
    }
    return refused
  }
}

/** Fields with the number to add to each. */
type FieldCounts = [field: string, count: number][]

const isAccount = (field: string): boolean => field.startsWith('a|')

function fieldsOf(counts: Map<number, Fields>, at: number): Fields {
  const fields = counts.get(at) ?? new Map<string, number>()
  counts.set(at, fields)
  return fields
}

/** Adds counts to the counts of a slot or quarter that still have to be written. */
function keep(all: Map<number, Fields>, at: number, counts: FieldCounts): void {
  if (counts.length === 0) return
  const fields = fieldsOf(all, at)
  for (const [field, count] of counts)
    if (fields.size < FIELDS_MAX || fields.has(field)) increment(fields, field, count)
}

function increment(counts: Map<string, number>, field: string, by: number): void {
  counts.set(field, (counts.get(field) ?? 0) + by)
}

function timeBucketOf(ms: number): number {
  const index = TIME_BOUNDS_MS.findIndex((bound) => ms <= bound)
  return index < 0 ? TIME_BOUNDS_MS.length : index
}

/** Calls of the whole fleet in one period. */
export interface Counts {
  /** Start, milliseconds since the epoch. */
  at: number
  /** Calls by `slug|code`. */
  calls: Map<string, number>
  /** Number of calls in each time bucket, by slug. */
  queue: Map<string, number[]>
  upstream: Map<string, number[]>
}

/** One minute of the whole fleet. */
export interface Minute extends Counts {
  /** Calls by account and status. Only the accounts with the most calls are included. */
  accounts: { id: string; status: number; count: number }[]
}

/** Reads the accounts with the most calls in the minute that contains a time. */
export async function readAccounts(redis: RedisConnection, epochMs: number): Promise<Minute['accounts']> {
  const texts = await redis.zrange(keys.minuteAccounts(Math.floor(epochMs / MINUTE_MS)), '0', '-1', 'WITHSCORES')
  const accounts: Minute['accounts'] = []
  for (let index = 0; index < texts.length; index += 2) {
    const [id = '', status] = texts[index]?.split('|') ?? []
    accounts.push({ id, status: Number(status), count: Number(texts[index + 1]) })
  }
  return accounts
}

/** Reads the slot of ten seconds that contains a time. */
export async function readSlot(redis: RedisConnection, epochMs: number): Promise<Counts> {
  const slot = Math.floor(epochMs / SLOT_MS)
  return parseCounts(slot * SLOT_MS, await redis.hgetall(keys.slotStats(slot)))
}

/** Reads the quarter of an hour that contains a time. */
export async function readQuarter(redis: RedisConnection, epochMs: number): Promise<Counts> {
  const quarter = Math.floor(epochMs / QUARTER_MS)
  return parseCounts(quarter * QUARTER_MS, await redis.hgetall(keys.quarterStats(quarter)))
}

function parseCounts(at: number, hash: Record<string, string>): Counts {
  const counts = emptyCounts(at)
  for (const [field, value] of Object.entries(hash)) {
    const [kind, slug = '', rest = ''] = field.split('|')
    if (kind === 'c') counts.calls.set(`${slug}|${rest}`, Number(value))
    else addToBucket(histogramOf(kind === 'q' ? counts.queue : counts.upstream, slug), Number(rest), Number(value))
  }
  return counts
}

/** Adds up several slots. */
export function sumOfCounts(at: number, all: Counts[]): Counts {
  const sum = emptyCounts(at)
  for (const { calls, queue, upstream } of all) {
    for (const [key, count] of calls) increment(sum.calls, key, count)
    for (const [total, histograms] of [
      [sum.queue, queue],
      [sum.upstream, upstream],
    ] as const)
      for (const [slug, histogram] of histograms)
        for (const [bucket, count] of histogram.entries()) addToBucket(histogramOf(total, slug), bucket, count)
  }
  return sum
}

const emptyCounts = (at: number): Counts => ({ at, calls: new Map(), queue: new Map(), upstream: new Map() })

function histogramOf(histograms: Map<string, number[]>, slug: string): number[] {
  const histogram = histograms.get(slug) ?? emptyHistogram()
  histograms.set(slug, histogram)
  return histogram
}

function addToBucket(histogram: number[], bucket: number, count: number): void {
  histogram[bucket] = (histogram[bucket] ?? 0) + count
}

export function emptyHistogram(): number[] {
  return Array.from({ length: TIME_BOUNDS_MS.length + 1 }, () => 0)
}

/**
 * A quantile of a histogram over `TIME_BOUNDS_MS`, interpolated within its bucket; undefined for an
 * empty histogram.
 */
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
