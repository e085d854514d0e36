import type { Log } from '../log.ts'
import type { Announcements } from '../redis/announcements.ts'
import type { RedisClock } from '../redis/clock.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { channels, upstreamKeys } from '../redis/keys.ts'
import { type HealthView, halfOpenWaitMs, readStatus, servedByFallback, viewHealth } from './health-view.ts'

/**
 * How often the health of upstreams is read again, milliseconds: of upstreams that calls have used
 * since, of upstreams in trouble, and of some others. Changes of state are announced separately.
 * Polling reads counts, and changes whose announcement was lost.
 */
const POLL_MS = 10_000

/** How many of the other upstreams are read each time, in turn, so that a process reads few. */
const READ_IN_TURN = 28

/** State that was read longer ago than this may be outdated, milliseconds. */
const STALE_MS = POLL_MS + 5_000

/**
 * `ordinary`: when answers last lacked the member, if they sometimes do. `since`: when an alarm
 * about the member began. `good`: number of answers since then that had it.
 */
export type KnownMembers = Record<string, KnownMember>

/**
 * `count`: answers in a row that lack the member. `probedAt`: when a probe was last told to decide.
 */
interface KnownMember {
  ordinary?: number
  since?: number
  good?: number
  count?: number
  probedAt?: number
}

/** A source, and the fallback source that answers if it fails. */
interface HealthSource {
  slug: string
  fallback?: { slug: string } | undefined
}

interface HealthCacheDeps {
  redis: RedisConnection
  announcements: Pick<Announcements, 'on'>
  clock: Pick<RedisClock, 'now'>
  log: Log
}

/**
 * The health of every upstream, as this process knows it. It is read at once when a change is
 * announced, every ten seconds while calls use the upstream or it is in trouble, and otherwise in
 * turn. Reading it costs no round trip. While Redis is away, the last known state is used.
 */
export class HealthCache {
  readonly #redis: RedisConnection
  readonly #announcements: Pick<Announcements, 'on'>
  #slugs: string[] = []
  /** The fallback sources by API, for APIs with a fallback source. */
  readonly #fallbacks = new Map<string, string>()
  readonly #log: Log
  readonly #clock: Pick<RedisClock, 'now'>
  readonly #hashes = new Map<string, Record<string, string>>()
  readonly #members = new Map<string, { text: string; members: KnownMembers }>()
  readonly #usualMs = new Map<string, number | undefined>()
  readonly #listeners: ((slug: string) => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #isReading = false
  /** Upstreams that calls have used since the last poll. */
  readonly #used = new Set<string>()
  /** Index in the list of upstreams at which the next turn begins. */
  #turn = 0
  #readAt = performance.now()

  constructor({ redis, announcements, clock, log }: HealthCacheDeps, sources: Iterable<HealthSource>) {
    this.#redis = redis
    this.#announcements = announcements
    this.#log = log
    this.#clock = clock
    this.#name(sources)
  }

  #name(sources: Iterable<HealthSource>): void {
    const all = [...sources]
    this.#slugs = all.map(({ slug }) => slug)
    this.#fallbacks.clear()
    for (const { slug, fallback } of all) if (fallback) this.#fallbacks.set(slug, fallback.slug)
  }

  /** Watches other sources from now on. */
  follow(sources: Iterable<HealthSource>): void {
    this.#name(sources)
    this.#turn = 0
    void this.refresh()
  }

  /** Starts watching. The first state is read in the background. */
  open(): void {
    this.#announcements.on(
      channels.health,
      (slug) => this.#onChange(slug),
      () => void this.refresh(),
    )
    this.#timer = setInterval(() => void this.poll(), POLL_MS)
    this.#redis.once('ready', () => void this.refresh())
    if (this.#redis.status === 'ready') void this.refresh()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /**
   * Whether Redis does not answer this process. The known health is then old, and calls are
   * refused.
   */
  get isStale(): boolean {
    return this.#redis.status !== 'ready' || performance.now() - this.#readAt > STALE_MS
  }

  /**
   * Health of an API as its callers find it. If its source is down or limits the gateway, and a
   * fallback source is not down, this is the health with the fallback. The API is Down since the
   * later of the two went down.
   */
  of(slug: string): HealthView {
    const view = this.ofUpstream(slug)
    if (view.status !== 'Down' && view.limitedUntil === undefined) return view
    const fallback = this.#fallbacks.get(slug)
    if (fallback === undefined) return view
    const other = this.ofUpstream(fallback)
    if (other.status !== 'Down') return servedByFallback(view)
    return view.status === 'Down' ? { ...view, since: Math.max(view.since ?? 0, other.since ?? 0) } : view
  }

  /** Health of one upstream, regardless of fallback sources. */
  ofUpstream(slug: string): HealthView {
    return viewHealth(this.#hashes.get(slug) ?? {}, this.#clock.now())
  }

  /** Whether one source is Healthy, without computing the rest of its health. */
  #isHealthy(slug: string): boolean {
    return readStatus(this.#hashes.get(slug)?.state) === 'Healthy'
  }

  /** `usualMs` of an API at the last reading. Each call needs it, and it changes slowly. */
  usualMs(slug: string): number | undefined {
    if (!this.#usualMs.has(slug)) this.#usualMs.set(slug, this.ofUpstream(slug).usualMs)
    return this.#usualMs.get(slug)
  }

  /**
   * What is known about members that answers of an upstream have lacked, by endpoint and name;
   * undefined as long as no answer has lacked a member.
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
   * Time until calls of an API may be sent, see `breakerWaitMsOfUpstream`; undefined while a
   * fallback source can be tried.
   */
  breakerWaitMs(slug: string): number | undefined {
    const waitMs = this.breakerWaitMsOfUpstream(slug)
    if (!waitMs) return waitMs
    const fallback = this.#fallbacks.get(slug)
    const fallbackMs = fallback === undefined ? waitMs : this.breakerWaitMsOfUpstream(fallback)
    return fallbackMs ? Math.min(waitMs, fallbackMs) : undefined
  }

  /**
   * Time until the breaker of one upstream allows an attempt, whole milliseconds (0: a half-open
   * attempt is allowed now); undefined while the breaker is closed.
   */
  breakerWaitMsOfUpstream(slug: string): number | undefined {
    this.#used.add(slug)
    const hash = this.#hashes.get(slug)
    return hash?.open === '1' ? halfOpenWaitMs(hash, this.#clock.now()) : undefined
  }

  /** Whether there may be callers whom the source limits alone. */
  hasLimitedCallers(slug: string): boolean {
    return Number(this.#hashes.get(slug)?.callersLimitedUntil ?? 0) > this.#clock.now()
  }

  /** Calls `listener` after an announced change was read. */
  onChange(listener: (slug: string) => void): void {
    this.#listeners.push(listener)
  }

  /** Reads every upstream. */
  async refresh(): Promise<void> {
    await this.#read(this.#slugs)
  }

  /**
   * Reads the upstreams that calls have used since the last poll, the upstreams in trouble, and the
   * next few of the others.
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
      // Sent with one write, because the connection sends the commands of a tick together.
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
