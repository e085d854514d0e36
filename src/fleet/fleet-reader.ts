import { countOutdated } from '../accounts/reseal.ts'
import type { Config } from '../config.ts'
import { listAuditRecords } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import { listLatestHealthChanges } from '../db/health-changes.ts'
import { countUnapproved, findEmails } from '../db/users.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { readProcesses } from '../telemetry/heartbeat.ts'
import { ApiLists } from '../telemetry/known-apis.ts'
import type { Readiness } from '../telemetry/readiness.ts'
import { headlineOf } from './headline.ts'
import { LastDayReader, LastHourReader, toAccounts, toErrors, toLastHour, toLastMinute } from './last-hour.ts'
import { findProblems, SEALED_EARLIER_MAX, UNAPPROVED_MAX } from './problems.ts'
import { type QueueContents, readQueueContents } from './queue-contents.ts'
import type { LastHour, Snapshot, UpstreamRow } from './snapshot.ts'
import { readStores } from './stores.ts'
import { type RowDeps, rowsWithoutRedis, UpstreamRowReader } from './upstream-rows.ts'

export interface FleetDeps extends RowDeps {
  redis: RedisConnection
  db: Db
  config: Pick<Config, 'accounts' | 'secrets'>
  telemetry: { readiness: Pick<Readiness, 'check'> }
}

/** How fresh a snapshot is at least, and how often the slow parts are read. Milliseconds. */
const FRESH_MS = 900
const SLOW_EVERY_MS = 2_000

/** Most changes of health and acts of operators in a snapshot. */
const SHOWN_MAX = 12

/** Most email addresses that are remembered. */
const EMAILS_MAX = 1_000

/** Parts of a snapshot that are read less often. */
type Slow = Pick<
  Snapshot,
  'changes' | 'audit' | 'stores' | 'unready' | 'unapproved' | 'sealedEarlier' | 'usageFailingSince'
>

/** Parts of a snapshot that come from Redis. */
type Fleet = Pick<Snapshot, 'upstreams' | 'lastMinute' | 'lastHour' | 'errors' | 'accounts' | 'processes'>

/**
 * The row of one API and the contents of its queue; the contents are null while Redis does not
 * answer.
 */
export interface QueueView {
  at: number
  row: UpstreamRow
  /** Number of workers that serve the API; null while Redis does not answer. */
  workers: number | null
  contents: QueueContents | null
}

/**
 * Reads the state of the whole fleet on request. Requests within a second share one reading, so
 * that console, operator API and metrics show the same numbers.
 */
export class FleetReader {
  readonly #deps: FleetDeps
  readonly #lists: ApiLists
  readonly #hour: LastHourReader
  readonly #day: LastDayReader
  readonly #rows: UpstreamRowReader
  #snapshot: Promise<Snapshot> | undefined
  /**
   * When the snapshot was taken, by the monotonic clock, so that an old snapshot is not shown for
   * longer if the machine's clock is set back.
   */
  #takenAt = Number.NEGATIVE_INFINITY
  #slow: Slow = {
    changes: null,
    audit: null,
    stores: { redis: null, postgres: null },
    unready: [],
    unapproved: null,
    sealedEarlier: null,
    usageFailingSince: null,
  }
  #slowAt = Number.NEGATIVE_INFINITY
  /**
   * The first reading of the slow parts. Until it has ended, the stores are unknown, which does not
   * mean that they do not answer.
   */
  #firstSlow: Promise<void> | undefined
  /** Email addresses of accounts that were looked up. */
  readonly #emails = new Map<string, string | null>()

  constructor(deps: FleetDeps) {
    this.#deps = deps
    this.#lists = new ApiLists(deps.redis)
    this.#hour = new LastHourReader(deps.redis)
    this.#day = new LastDayReader(deps.redis)
    this.#rows = new UpstreamRowReader(deps)
  }

  /** The state of the fleet, at most a second old. */
  snapshot(): Promise<Snapshot> {
    if (!this.#snapshot || performance.now() - this.#takenAt > FRESH_MS) {
      this.#takenAt = performance.now()
      this.#snapshot = this.#take()
      this.#snapshot.catch(() => {
        this.#snapshot = undefined
      })
    }
    return this.#snapshot
  }

  /** The last 24 hours in quarters of an hour; null while Redis does not answer. */
  async lastDay(): Promise<LastHour | null> {
    const { clock, log } = this.#deps
    try {
      return toLastHour(await this.#day.read(clock.now()))
    } catch (error) {
      log.debug({ err: error }, 'failed to read the last day')
      return null
    }
  }

  /** The queue of one API; undefined if the catalog does not have the API. */
  async queueOf(slug: string): Promise<QueueView | undefined> {
    const { at, upstreams, processes } = await this.snapshot()
    const row = upstreams.find((each) => each.slug === slug)
    if (!row) return undefined
    const serving = processes?.filter(({ kind, serves }) => kind === 'worker' && serves?.includes(slug) !== false)
    const workers = serving?.length ?? null
    return { at, row, workers, contents: await this.#readQueue(row, { isServed: workers !== 0 }) }
  }

  async #readQueue({ slug, paused }: UpstreamRow, { isServed }: { isServed: boolean }): Promise<QueueContents | null> {
    try {
      const contents = await readQueueContents(this.#deps, { slug, isHeld: paused === 'hold', isServed })
      const emails = await this.#emailsOf(contents.calls.map(({ accountId }) => accountId))
      return { ...contents, calls: contents.calls.map((call) => ({ ...call, email: emails(call.accountId) })) }
    } catch (error) {
      this.#deps.log.debug({ err: error, slug }, 'failed to read a queue')
      return null
    }
  }

  async #take(): Promise<Snapshot> {
    // The time of Redis, which heartbeats, changes of health and counts use too.
    const at = this.#deps.clock.now()
    const slow = this.#slowPart()
    const fleet = await this.#readFleet(at)
    await slow
    const stores = fleet ? this.#slow.stores : { ...this.#slow.stores, redis: null }
    const known = fleet ?? {
      upstreams: rowsWithoutRedis(this.#deps),
      lastMinute: null,
      lastHour: null,
      errors: null,
      accounts: null,
      processes: null,
    }
    // If Redis cannot write its file or is a replica, it accepts no heartbeats, so nobody knows
    // which processes are alive.
    const processes = stores.redis?.isFileFailing || stores.redis?.isReplica ? null : known.processes
    const facts = { at, ...known, ...this.#slow, stores, processes }
    const problems = findProblems(facts)
    return { ...facts, problems, headline: headlineOf({ ...facts, problems }) }
  }

  /**
   * Undefined while Redis does not answer. The rest of the snapshot is still shown, because
   * operators need it most then.
   */
  async #readFleet(at: number): Promise<Fleet | undefined> {
    const { redis, log } = this.#deps
    try {
      const [counts, beats] = await Promise.all([this.#hour.read(at), readProcesses(redis, at)])
      await this.#lists.read(beats.map(({ apis }) => apis))
      const { minutes } = counts
      const accounts = toAccounts(minutes)
      const emails = await this.#emailsOf(accounts.map(({ id }) => id))
      return {
        upstreams: await this.#rows.read(counts),
        lastMinute: toLastMinute(counts),
        lastHour: toLastHour(minutes),
        errors: toErrors(minutes),
        accounts: accounts.map((account) => ({ ...account, email: emails(account.id) })),
        processes: beats.map(({ id: _, at: __, isDraining: ___, serves = null, apis, ...beat }) => ({
          ...beat,
          serves,
          apis: this.#lists.of(apis) ?? null,
          upMs: Math.max(0, at - beat.startedAt),
        })),
      }
    } catch (error) {
      log.debug({ err: error }, 'failed to read the fleet')
      return undefined
    }
  }

  /**
   * The email addresses of accounts; null for accounts that Postgres does not know, and while it
   * does not answer.
   */
  async #emailsOf(ids: string[]): Promise<(id: string) => string | null> {
    const { db, log } = this.#deps
    if (this.#emails.size > EMAILS_MAX) this.#emails.clear()
    const unknown = [...new Set(ids)].filter((id) => !this.#emails.has(id))
    if (unknown.length > 0) {
      try {
        const emails = await findEmails(db, unknown)
        for (const id of unknown) this.#emails.set(id, emails.get(id) ?? null)
      } catch (error) {
        log.debug({ err: error }, 'failed to look up accounts')
      }
    }
    return (id) => this.#emails.get(id) ?? null
  }

  async #slowPart(): Promise<void> {
    if (performance.now() - this.#slowAt < SLOW_EVERY_MS) return await this.#firstSlow
    const isFirst = this.#slowAt === Number.NEGATIVE_INFINITY
    this.#slowAt = performance.now()
    const reading = this.#readSlow()
    if (!isFirst) return await reading
    this.#firstSlow = reading.finally(() => {
      this.#firstSlow = undefined
    })
    await this.#firstSlow
  }

  async #readSlow(): Promise<void> {
    const { redis, db, log, config, telemetry } = this.#deps
    const orNull = (error: unknown): null => {
      log.debug({ err: error }, 'failed to read a part of the overview')
      return null
    }
    const { encryption } = config.secrets
    const needsApproval = config.accounts.signup === 'approval'
    const [stores, changes, audit, readiness, unapproved, sealedEarlier, usageFailing] = await Promise.all([
      readStores(redis, db),
      listLatestHealthChanges(db, SHOWN_MAX).catch(orNull),
      listAuditRecords(db, {}, SHOWN_MAX).catch(orNull),
      telemetry.readiness.check(),
      needsApproval ? countUnapproved(db, UNAPPROVED_MAX).catch(orNull) : null,
      encryption.length > 1 ? countOutdated(db, encryption, SEALED_EARLIER_MAX).catch(orNull) : null,
      redis.get(keys.usageFailing).catch(orNull),
    ])
    this.#slow = {
      stores,
      unready: readiness.problems,
      unapproved,
      sealedEarlier,
      usageFailingSince: usageFailing === null ? null : Number(usageFailing),
      audit:
        audit?.map(({ at: when, actor, action, subject }) => ({ at: when.getTime(), actor, action, subject })) ?? null,
      changes:
        changes?.map(({ slug, at: when, from_status, to_status, cause, numbers }) => ({
          slug,
          at: when.getTime(),
          from: from_status,
          to: to_status,
          cause,
          code: numbers.code,
          score: numbers.score,
        })) ?? null,
    }
  }
}
