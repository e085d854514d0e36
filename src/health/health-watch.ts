import type { Log } from '../log.ts'
import { RedisClock } from '../redis/clock.ts'
import { openRedis, type RedisConnection } from '../redis/connection.ts'
import { channels, upstreamKeys } from '../redis/keys.ts'
import { breakerWaitMsIn, type HealthView, readStatus, servedByFallback, viewHealth } from './health-view.ts'

/**
 * How often upstreams are read again, milliseconds: upstreams that calls used since, upstreams in
 * trouble, and some of the others. Changes of state are announced; what is read are counts, and
 * what a lost message said.
 */
const POLL_MS = 10_000

/** So many of the others each time, in turn: a process reads few, however many there are. */
const READ_IN_TURN = 28

/** What was read longer ago may be untrue by now, milliseconds. */
const STALE_MS = POLL_MS + 5_000

/**
 * `ordinary`: answers lack it at times, last then; `since`: the answers of an alarm lack it;
 * `good`: but so many had it since.
 */
export type KnownMembers = Record<string, KnownMember>

/** `count`: answers in a row that lack it; `probedAt`: when a probe was last to decide. */
interface KnownMember {
  ordinary?: number
  since?: number
  good?: number
  count?: number
  probedAt?: number
}

/** A source, and the fallback source that answers when it fails. */
export interface HealthSource {
  slug: string
  fallback?: { slug: string } | undefined
}

export interface HealthCacheDeps {
  redis: RedisConnection
  /** For a connection of its own that hears of changes. */
  redisUrls: string[]
  log: Log
}

/**
 * The health of every upstream as this process knows it: read at once when a change is announced,
 * every ten seconds while calls use the upstream or it is in trouble, and in turn otherwise. Asking
 * it costs no round trip. Without Redis the last known state holds.
 */
export class HealthCache {
  readonly #redis: RedisConnection
  readonly #redisUrls: string[]
  #slugs: string[] = []
  /** The fallback source of each API, if it has a fallback source. */
  readonly #fallbacks = new Map<string, string>()
  readonly #log: Log
  readonly #clock: RedisClock
  readonly #hashes = new Map<string, Record<string, string>>()
  readonly #members = new Map<string, { text: string; members: KnownMembers }>()
  readonly #usualMs = new Map<string, number | undefined>()
  readonly #listeners: ((slug: string) => void)[] = []
  #subscriber: RedisConnection | undefined
  #timer: NodeJS.Timeout | undefined
  #isReading = false
  /** The upstreams that calls used since the last poll. */
  readonly #used = new Set<string>()
  /** Where in the list of all upstreams the next turn begins. */
  #turn = 0
  #readAt = performance.now()

  constructor({ redis, redisUrls, log }: HealthCacheDeps, sources: Iterable<HealthSource>) {
    this.#redis = redis
    this.#redisUrls = redisUrls
    this.#log = log
    this.#clock = new RedisClock(redis, log)
    this.#name(sources)
  }

  #name(sources: Iterable<HealthSource>): void {
    const all = [...sources]
    this.#slugs = all.map(({ slug }) => slug)
    this.#fallbacks.clear()
    for (const { slug, fallback } of all) if (fallback) this.#fallbacks.set(slug, fallback.slug)
  }

  /** Follows other sources from now on. */
  follow(sources: Iterable<HealthSource>): void {
    this.#name(sources)
    this.#turn = 0
    void this.refresh()
  }

  /** Starts following; what is known comes in the background. */
  open(): void {
    this.#clock.open()
    this.#subscriber = openRedis(this.#redisUrls, 'blocking', this.#log)
    this.#subscriber.on('message', (_channel, slug) => this.#onChange(slug))
    // What was announced while it was away is read now.
    this.#subscriber.on('ready', () => void this.refresh())
    this.#subscriber
      .subscribe(channels.health)
      .catch((error) => this.#log.debug({ err: error }, 'failed to subscribe to health changes'))
    this.#timer = setInterval(() => void this.poll(), POLL_MS)
    this.#redis.once('ready', () => void this.refresh())
    if (this.#redis.status === 'ready') void this.refresh()
  }

  close(): void {
    this.#clock.close()
    clearInterval(this.#timer)
    this.#subscriber?.disconnect()
  }

  /**
   * Whether Redis does not answer this process: what is known of the upstreams is old, and calls
   * are refused.
   */
  get isStale(): boolean {
    return this.#redis.status !== 'ready' || performance.now() - this.#readAt > STALE_MS
  }

  /**
   * Health of an API now, as its callers find it: while its source is down, a fallback source
   * answers that is not down.
   */
  of(slug: string): HealthView {
    const view = this.ofUpstream(slug)
    if (view.status !== 'Down') return view
    const fallback = this.#fallbacks.get(slug)
    return fallback === undefined || this.ofUpstream(fallback).status === 'Down' ? view : servedByFallback(view)
  }

  /** Health of one upstream now, whether or not it has a fallback source. */
  ofUpstream(slug: string): HealthView {
    return viewHealth(this.#hashes.get(slug) ?? {}, this.now())
  }

  /** Whether one source is Healthy, without the rest of its health. */
  #isHealthy(slug: string): boolean {
    return readStatus(this.#hashes.get(slug)?.state) === 'Healthy'
  }

  /**
   * `usualMs` of an API's health when it was read last. Each call needs it, and it changes slowly.
   */
  usualMs(slug: string): number | undefined {
    if (!this.#usualMs.has(slug)) this.#usualMs.set(slug, this.ofUpstream(slug).usualMs)
    return this.#usualMs.get(slug)
  }

  /**
   * What is known of members that answers of an upstream lack, by endpoint and name; undefined as
   * long as none did.
   */
  membersOf(slug: string): KnownMembers | undefined {
    const text = this.#hashes.get(slug)?.members
    if (text === undefined) return undefined
    const parsed = this.#members.get(slug)
    if (parsed?.text === text) return parsed.members
    const members = JSON.parse(text) as KnownMembers
    this.#members.set(slug, { text, members })
    return members
  }

  /**
   * How long until calls of an API may be sent, as `breakerWaitMsOfUpstream` says it; undefined
   * while a fallback source can be tried.
   */
  breakerWaitMs(slug: string): number | undefined {
    const waitMs = this.breakerWaitMsOfUpstream(slug)
    if (!waitMs) return waitMs
    const fallback = this.#fallbacks.get(slug)
    const fallbackMs = fallback === undefined ? waitMs : this.breakerWaitMsOfUpstream(fallback)
    return fallbackMs ? Math.min(waitMs, fallbackMs) : undefined
  }

  /** `breakerWaitMsIn` of one upstream now. */
  breakerWaitMsOfUpstream(slug: string): number | undefined {
    this.#used.add(slug)
    return breakerWaitMsIn(this.#hashes.get(slug) ?? {}, this.now())
  }

  /** Whether accounts may be remembered whose undeclared parameters met a limit of the source. */
  limitsCallers(slug: string): boolean {
    return Number(this.#hashes.get(slug)?.callersLimitedUntil ?? 0) > this.now()
  }

  /** Redis' clock, milliseconds since the epoch. */
  now(): number {
    return this.#clock.now()
  }

  /** Calls back after an announced change was read. */
  onChange(listener: (slug: string) => void): void {
    this.#listeners.push(listener)
  }

  /** Reads every upstream. */
  async refresh(): Promise<void> {
    await this.#read(this.#slugs)
  }

  /**
   * Reads the upstreams that calls used since the last poll, the upstreams in trouble, and the next
   * few of the others.
   */
  async poll(): Promise<void> {
    const due = new Set(this.#used)
    this.#used.clear()
    for (const slug of this.#slugs) if (!this.#isHealthy(slug)) due.add(slug)
    for (const slug of this.#slugs.slice(this.#turn, this.#turn + READ_IN_TURN)) due.add(slug)
    this.#turn += READ_IN_TURN
    if (this.#turn >= this.#slugs.length) this.#turn = 0
    await this.#read(due)
  }

  async #read(slugs: Iterable<string>): Promise<void> {
    if (this.#isReading || this.#redis.status !== 'ready') return
    this.#isReading = true
    try {
      // One write for all of them: the connection sends a tick's commands together.
      await Promise.all([...slugs].map((slug) => this.read(slug)))
      this.#readAt = performance.now()
    } catch (error) {
      this.#log.debug({ err: error }, 'failed to read health')
    } finally {
      this.#isReading = false
    }
  }

  /**
   * Reads one upstream.
   * @throws what Redis throws
   */
  async read(slug: string): Promise<void> {
    this.#hashes.set(slug, await this.#redis.hgetall(upstreamKeys.health(slug)))
    this.#usualMs.delete(slug)
  }

  #onChange(slug: string): void {
    this.read(slug).then(
      () => {
        for (const listener of this.#listeners) listener(slug)
      },
      (error) => this.#log.debug({ err: error, slug }, 'failed to read health'),
    )
  }
}
