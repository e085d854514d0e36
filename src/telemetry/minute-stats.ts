import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'

/** Upper bounds of the time buckets, milliseconds; a last bucket holds what took longer. */
const TIME_BOUNDS_MS = [
  5, 10, 20, 50, 100, 200, 350, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500, 10_000, 15_000, 30_000,
]

const MINUTE_MS = 60_000
const FLUSH_MS = 1_000
const KEPT_SECONDS = 7_200

/** Fields that one process keeps while Redis is away; beyond them nothing is added. */
const FIELDS_MAX = 20_000

/** Accounts that one process adds to a minute each second, and that a minute keeps; those with most calls. */
const ACCOUNTS_ADDED_MAX = 50
const ACCOUNTS_KEPT_MAX = 300

/** An ended call, for the minute it ended in. */
export interface CompletedCall {
  slug: string
  /** `OK` or a code of the error table. */
  code: string
  /** Of whose account it was, and the status it was answered with. */
  accountId?: string | undefined
  status?: number | undefined
  queueMs?: number | undefined
  upstreamMs?: number | undefined
}

/**
 * Counts calls per minute over all API nodes, for the console's last hour: kept in memory and added to Redis each
 * second, off the path of any call. What a process that dies had not written yet, at most a second, is lost.
 */
export class MinuteStats {
  readonly #redis: RedisConnection
  readonly #now: () => number
  readonly #log: Log
  /** By minute. */
  #counts = new Map<number, Map<string, number>>()
  #timer: NodeJS.Timeout | undefined

  /** `now` is Redis' time: the nodes of a fleet count into the same minutes. */
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
    await this.flush()
  }

  add({ slug, code, accountId, status, queueMs, upstreamMs }: CompletedCall): void {
    const minute = minuteOf(this.#now())
    const counts = this.#counts.get(minute) ?? new Map<string, number>()
    this.#counts.set(minute, counts)
    increment(counts, `c|${slug}|${code}`, 1)
    if (accountId !== undefined) increment(counts, `a|${accountId}|${status}`, 1)
    if (queueMs !== undefined) increment(counts, `q|${slug}|${bucketOf(queueMs)}`, 1)
    if (upstreamMs !== undefined) increment(counts, `u|${slug}|${bucketOf(upstreamMs)}`, 1)
  }

  /** Adds what was counted to Redis; what it does not take is tried again. */
  async flush(): Promise<void> {
    if (this.#counts.size === 0 || this.#redis.status !== 'ready') return
    const flushed = this.#counts
    this.#counts = new Map()
    for (const [minute, counts] of flushed) {
      const refused = await this.#write(minute, [...counts]).catch((error: unknown) => {
        this.#log.debug({ err: error }, 'failed to write a minute of statistics')
        return [...counts]
      })
      if (refused.length > 0) this.#keep(minute, refused)
    }
  }

  #keep(minute: number, counts: [field: string, count: number][]): void {
    const kept = this.#counts.get(minute) ?? new Map<string, number>()
    this.#counts.set(minute, kept)
    for (const [field, count] of counts) if (kept.size < FIELDS_MAX) increment(kept, field, count)
  }

  /** @returns what Redis refused: a pipeline succeeds as a whole although its commands fail */
  async #write(minute: number, counts: [field: string, count: number][]): Promise<[field: string, count: number][]> {
    const pipeline = this.#redis.pipeline()
    const isAccount = ([field]: [string, number]) => field.startsWith('a|')
    const accounts = counts.filter(isAccount).sort(([, a], [, b]) => b - a)
    const [statsKey, accountsKey] = [keys.minuteStats(minute), keys.minuteAccounts(minute)]
    const added = [...counts.filter((each) => !isAccount(each)), ...accounts.slice(0, ACCOUNTS_ADDED_MAX)]
    for (const [field, count] of added) {
      if (isAccount([field, count])) pipeline.zincrby(accountsKey, count, field.slice(2))
      else pipeline.hincrby(statsKey, field, count)
    }
    pipeline.expire(statsKey, KEPT_SECONDS)
    if (accounts.length > 0) {
      pipeline.zremrangebyrank(accountsKey, 0, -ACCOUNTS_KEPT_MAX - 1)
      pipeline.expire(accountsKey, KEPT_SECONDS)
    }
    const replies = (await pipeline.exec()) ?? []
    const [[refusal] = []] = replies.filter(([error]) => error)
    if (refusal) this.#log.debug({ err: refusal }, 'failed to write some of a minute of statistics')
    return added.filter((_, index) => replies[index]?.[0])
  }
}

function increment(counts: Map<string, number>, field: string, by: number): void {
  counts.set(field, (counts.get(field) ?? 0) + by)
}

function bucketOf(ms: number): number {
  const index = TIME_BOUNDS_MS.findIndex((bound) => ms <= bound)
  return index < 0 ? TIME_BOUNDS_MS.length : index
}

function minuteOf(epochMs: number): number {
  return Math.floor(epochMs / MINUTE_MS)
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
  /** Calls by account and status of the answer; of the accounts with most calls alone. */
  accounts: { id: string; status: number; count: number }[]
}

/** Reads the minute that holds an instant. */
export async function readMinute(redis: RedisConnection, epochMs: number): Promise<Minute> {
  const number = minuteOf(epochMs)
  const [counts, accounts] = await Promise.all([
    redis.hgetall(keys.minuteStats(number)),
    redis.zrange(keys.minuteAccounts(number), '0', '-1', 'WITHSCORES'),
  ])
  const minute: Minute = {
    at: number * MINUTE_MS,
    calls: new Map(),
    queue: new Map(),
    upstream: new Map(),
    accounts: [],
  }
  for (let index = 0; index < accounts.length; index += 2) {
    const [id = '', status] = accounts[index]?.split('|') ?? []
    minute.accounts.push({ id, status: Number(status), count: Number(accounts[index + 1]) })
  }
  for (const [field, value] of Object.entries(counts)) {
    const [kind, slug = '', rest = ''] = field.split('|')
    if (kind === 'c') minute.calls.set(`${slug}|${rest}`, Number(value))
    else addToBucket(histogramOf(kind === 'q' ? minute.queue : minute.upstream, slug), Number(rest), Number(value))
  }
  return minute
}

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
