import { randomUUID } from 'node:crypto'
import type { Config } from '../config.ts'
import { insertCallRows, type NewCallRow, readDayBytes } from '../db/call-log.ts'
import { createPartitions, dayOf } from '../db/call-log-partitions.ts'
import { type Db, openDatabase } from '../db/database.ts'
import { sqlState } from '../db/postgres-errors.ts'
import { GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { DroppedRows } from './dropped-rows.ts'
import { cacheResult, type EndedCall, tenths } from './ended-call.ts'

/**
 * How often rows are written, milliseconds. If the process is killed, it loses the rows of this
 * time.
 */
const WRITE_EVERY_MS = 1_000

/**
 * Rows of one statement. They are about half a megabyte of JSON, which takes a few milliseconds to
 * write.
 */
const BATCH_ROWS = 1_000

/**
 * Most rows that wait for Postgres, about 10 MB. Fails open: further rows are dropped and counted.
 */
const WAITING_ROWS_MAX = 20_000

/** How long a closing process waits for the last rows, milliseconds. */
const CLOSE_MS_MAX = 1_000

/** How often the size of today's rows is read, milliseconds. */
const SIZE_EVERY_MS = 60_000

/** Length of the window in which refused calls of an account are counted, milliseconds. */
const WINDOW_MS = 60_000

/** SQLSTATE of a row for which there is no partition. */
const NO_PARTITION = '23514'

/** SQLSTATE of a lock that was not free in time. */
const LOCK_TIMEOUT = '55P03'

export interface CallLogDeps {
  db: Db
  log: Pick<Log, 'warn' | 'debug'>
  /** Redis' time, milliseconds since the epoch. */
  now: () => number
  days: number
  megabytes: number
  dropped: Pick<DroppedRows, 'add' | 'wait'>
}

/**
 * Writes the log of calls of one process, which users and operators read. It has a row for each
 * call that ended.
 */
export class CallLogWriter {
  readonly #deps: CallLogDeps
  readonly #refusals = new RefusalWindow()
  readonly #room: DayRoom
  #rows: NewCallRow[] = []
  /** Whether Postgres has refused the last write. */
  #isFailing = false
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined

  constructor(deps: CallLogDeps) {
    this.#deps = deps
    this.#room = new DayRoom(deps)
  }

  /**
   * Keeps a row until the next write. A call without an account has no row. Never throws, and never
   * waits for Postgres.
   */
  write(call: EndedCall): void {
    const { days, dropped, now } = this.#deps
    const { accountId, mode, refusedByPlan } = call
    if (days === 0 || accountId === undefined || mode === undefined) return
    if (!this.#room.hasRoomFor(call)) dropped.add('size')
    else if (refusedByPlan && !this.#refusals.countAndCheck(accountId, refusedByPlan.perMinute)) dropped.add('account')
    else if (this.#rows.length >= WAITING_ROWS_MAX) dropped.add('postgres')
    else {
      this.#rows.push({ ...toRow(call), account_id: accountId, mode, at: Math.round(now()) })
      this.#timer ??= setTimeout(() => this.#writeSoon(), WRITE_EVERY_MS).unref()
    }
  }

  /** Writes the waiting rows; takes at most a second. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, CLOSE_MS_MAX)
    await Promise.race([this.#writeAll(), over])
    clearTimeout(timer)
    if (this.#rows.length > 0) this.#drop(this.#rows.length)
    this.#rows = []
    await this.#deps.db.destroy()
  }

  #writeSoon(): void {
    this.#writeAll().finally(() => {
      this.#timer = this.#rows.length === 0 ? undefined : setTimeout(() => this.#writeSoon(), WRITE_EVERY_MS).unref()
    })
  }

  /** Writes all waiting rows, one statement after the other. Never rejects. */
  async #writeAll(): Promise<void> {
    this.#writing ??= this.#writeBatches().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  async #writeBatches(): Promise<void> {
    const { db, log, dropped } = this.#deps
    try {
      await this.#room.read()
      while (this.#rows.length > 0) {
        const batch = this.#rows.slice(0, BATCH_ROWS)
        if (!(await this.#insert(db, batch))) this.#drop(batch.length)
        this.#rows.splice(0, batch.length)
      }
      this.#isFailing = false
    } catch (error) {
      // Postgres is away, slow, full or read-only, so the rows wait.
      const level = this.#isFailing ? 'debug' : 'warn'
      this.#isFailing = true
      log[level]({ err: error, rows: this.#rows.length }, 'failed to write the log of calls; the rows wait')
    }
    dropped.wait(this.#isFailing ? this.#rows.length : 0)
  }

  /**
   * @returns false if Postgres will never accept the rows
   * @throws if Postgres cannot accept rows now
   */
  async #insert(db: Db, batch: NewCallRow[]): Promise<boolean> {
    const { log } = this.#deps
    try {
      await insertCallRows(db, batch).catch(async (error: unknown) => {
        if (sqlState(error) !== NO_PARTITION) throw error
        await createPartitions(db, [...new Set(batch.map(({ at }) => dayOf(at)))])
        await insertCallRows(db, batch)
      })
      return true
    } catch (error) {
      if (error instanceof GatewayError || sqlState(error) === LOCK_TIMEOUT) throw error
      log.warn({ err: error, rows: batch.length }, 'failed to write rows of the log of calls; they are dropped')
      return false
    }
  }

  #drop(rows: number): void {
    this.#deps.dropped.add('postgres', rows)
  }
}

/**
 * Opens the log of calls of a process, with its own connection to Postgres, so that nothing waits
 * for it.
 */
export function openCallLog(
  { databaseUrl, callLog }: Pick<Config, 'databaseUrl' | 'callLog'>,
  deps: Pick<CallLogDeps, 'now' | 'dropped'> & { log: Log },
): CallLogWriter {
  const db = openDatabase(databaseUrl, deps.log, { connectionsMax: 1 })
  return new CallLogWriter({ ...deps, ...callLog, db })
}

/**
 * Counts the refused calls of each account in a minute. Such calls are free, so their rows are
 * limited.
 */
class RefusalWindow {
  #counts = new Map<string, number>()
  #endsAt = 0

  /**
   * Counts a refused call.
   * @returns whether its row may be written
   */
  countAndCheck(accountId: string, perMinute: number): boolean {
    const now = performance.now()
    if (now >= this.#endsAt) {
      this.#counts = new Map()
      this.#endsAt = now + WINDOW_MS
    }
    const count = this.#counts.get(accountId) ?? 0
    this.#counts.set(accountId, count + 1)
    return count < perMinute
  }
}

/**
 * How much of a day's quota of CALL_LOG_MEGABYTES may be used before rows of each kind are dropped.
 */
const SHARES = { free: 0.5, charged: 1, failed: 1.2 }

/**
 * Which rows the day still takes. Free calls (refused calls and test calls) get rows until half of
 * a day's quota is used, so that they leave room for charged calls. Accounts are free too, so an
 * attacker could make many. Once the whole quota is used, only failures of admitted calls get rows.
 */
class DayRoom {
  readonly #deps: CallLogDeps
  #used = 0
  #readAt = Number.NEGATIVE_INFINITY
  #day = ''

  constructor(deps: CallLogDeps) {
    this.#deps = deps
  }

  hasRoomFor({ refusedByPlan, mode, code }: EndedCall): boolean {
    if (refusedByPlan || mode === 'test') return this.#used < SHARES.free
    return this.#used < (code === undefined ? SHARES.charged : SHARES.failed)
  }

  /**
   * Reads the size of today's rows, once a minute.
   * @throws GatewayError DEPENDENCY_UNAVAILABLE
   */
  async read(): Promise<void> {
    const { db, now, days, megabytes } = this.#deps
    const day = dayOf(now())
    const elapsedMs = performance.now() - this.#readAt
    if (day === this.#day && elapsedMs < SIZE_EVERY_MS) return
    const shareBytes = (megabytes * 1_000_000) / (days + 1)
    this.#used = (await readDayBytes(db, day)) / shareBytes
    this.#day = day
    this.#readAt = performance.now()
  }
}

/**
 * A cause that may be stored: words and times (`1.2 s`) only. A message that quotes something may
 * quote the upstream's answer, which may contain a value of the caller.
 */
const CAUSE = /^(?=.{1,120}$)([\w:,/ -]|\d\.\d(?= s(,|$)))+$/

function toRow(call: EndedCall): Omit<NewCallRow, 'account_id' | 'mode' | 'at'> {
  const { id, requestId, cause, times, cacheStatus, quotedMs, admissionMs } = call
  return {
    id: id === undefined ? randomUUID() : uuidOf(id),
    request_id: requestId === undefined ? null : uuidOf(requestId),
    key_id: call.keyId ?? null,
    status: call.status,
    attempts: times?.attempts ?? null,
    quoted_ms: quotedMs === undefined ? null : Math.round(quotedMs),
    admission_ms: admissionMs === undefined ? null : tenths(admissionMs),
    queue_ms: times ? tenths(times.queueMs) : null,
    permit_ms: times ? tenths(times.permitMs) : null,
    upstream_ms: times ? tenths(times.upstreamMs) : null,
    total_ms: tenths(call.totalMs),
    bytes: call.bytes ?? null,
    via: call.via ?? 'call',
    slug: call.slug,
    endpoint: call.endpoint ?? null,
    code: call.code ?? null,
    cause: cause !== undefined && CAUSE.test(cause) ? cause : null,
    cache: cacheStatus === undefined ? null : cacheResult(cacheStatus),
    tool: call.tool ?? null,
  }
}

/** The UUID of an id: `call_` and `req_` stand before its 32 digits. */
function uuidOf(id: string): string {
  return id.slice(id.indexOf('_') + 1)
}
