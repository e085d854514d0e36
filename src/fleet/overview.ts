import type { Context } from '../context.ts'
import { listAuditRecords } from '../db/audit-log.ts'
import { listLatestHealthChanges } from '../db/health-changes.ts'
import { readProcesses } from '../telemetry/heartbeat.ts'
import { LastHourReader, toErrors, toLastHour } from './last-hour.ts'
import type { AuditRow, ChangeRow, Snapshot, Stores } from './snapshot.ts'
import { readStores } from './stores.ts'
import { readUpstreamRows, rowsWithoutRedis } from './upstream-rows.ts'

/** How fresh a snapshot is at least, and how often the slow parts are read. Milliseconds. */
const FRESH_MS = 900
const SLOW_EVERY_MS = 2_000

/** Changes of health and acts of operators that are shown. */
const SHOWN_MAX = 12

/** What Redis knows of the fleet. */
type Fleet = Pick<Snapshot, 'upstreams' | 'lastHour' | 'errors' | 'processes'>

/** Looks at the whole fleet when somebody asks; several who ask at once share one look. */
export class Overview {
  readonly #context: Context
  readonly #hour: LastHourReader
  #snapshot: Promise<Snapshot> | undefined
  #takenAt = 0
  #slow: { changes: ChangeRow[]; audit: AuditRow[]; stores: Stores } = {
    changes: [],
    audit: [],
    stores: { redis: null, postgres: null },
  }
  #slowAt = 0

  constructor(context: Context) {
    this.#context = context
    this.#hour = new LastHourReader(context.redis)
  }

  /** What there is to see, at most a second old. */
  snapshot(): Promise<Snapshot> {
    if (!this.#snapshot || Date.now() - this.#takenAt > FRESH_MS) {
      this.#takenAt = Date.now()
      this.#snapshot = this.#take()
      this.#snapshot.catch(() => {
        this.#snapshot = undefined
      })
    }
    return this.#snapshot
  }

  async #take(): Promise<Snapshot> {
    const now = Date.now()
    const slow = this.#readSlow(now)
    try {
      const fleet = await this.#readFleet(now)
      await slow
      return { at: now, ...fleet, ...this.#slow }
    } catch (error) {
      // An operator needs the page most when Redis is away: it says so, and what else is known.
      this.#context.log.debug({ err: error }, 'fleet not read')
      const upstreams = rowsWithoutRedis(this.#context)
      const stores = { ...this.#slow.stores, redis: null }
      return { at: now, upstreams, lastHour: toLastHour([]), errors: [], processes: [], ...this.#slow, stores }
    }
  }

  async #readFleet(now: number): Promise<Fleet> {
    const { redis } = this.#context
    const [minutes, beats] = await Promise.all([this.#hour.read(now), readProcesses(redis)])
    return {
      upstreams: await readUpstreamRows(this.#context, minutes),
      lastHour: toLastHour(minutes),
      errors: toErrors(minutes),
      processes: beats.map(({ kind, host, pid, startedAt, busy, lagMs, memoryBytes, inFlight }) => {
        return { kind, host, pid, upMs: Math.max(0, now - startedAt), busy, lagMs, memoryBytes, inFlight }
      }),
    }
  }

  async #readSlow(now: number): Promise<void> {
    if (now - this.#slowAt < SLOW_EVERY_MS) return
    this.#slowAt = now
    const { redis, db, log } = this.#context
    const orNone = (error: unknown): [] => {
      log.debug({ err: error }, 'a part of the overview was not read')
      return []
    }
    const [stores, changes, audit] = await Promise.all([
      readStores(redis, db),
      listLatestHealthChanges(db, SHOWN_MAX).catch(orNone),
      listAuditRecords(db, SHOWN_MAX).catch(orNone),
    ])
    this.#slow = {
      stores,
      audit: audit.map(({ at, actor, action, subject }) => ({ at: at.getTime(), actor, action, subject })),
      changes: changes.map(({ slug, at, from_status, to_status, cause, numbers }) => ({
        slug,
        at: at.getTime(),
        from: from_status,
        to: to_status,
        cause,
        code: numbers.code,
        score: numbers.score,
      })),
    }
  }
}
