import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Log } from '../log.ts'
import type { Db } from './database.ts'

const DAY_MS = 86_400_000

/** For how many days after today partitions are created. */
const AHEAD_DAYS = 2

/**
 * Longest that a statement waits for a lock of the table, milliseconds. Statements behind it wait
 * as long.
 */
const LOCK_MS_MAX = 200

/** Key of the lock that lets one process at a time change the partitions of a schema. */
const LOCK = sql`hashtextextended(current_schema() || '.call_log', 2)`

/** How soon a process checks again whether the lock is free, milliseconds. */
const LOCK_RETRY_MS = 50

/** How often the partitions are checked, and how soon a failed check is repeated, milliseconds. */
const KEEP_EVERY_MS = 3_600_000
const RETRY_MS = 60_000

/**
 * Maintains the partitions, at the start and then every hour. Any number of processes may run it.
 */
export class CallLogPartitions {
  readonly #deps: { db: Db; log: Pick<Log, 'warn'>; days: number }
  #timer: NodeJS.Timeout | undefined
  #current: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(deps: { db: Db; log: Pick<Log, 'warn'>; days: number }) {
    this.#deps = deps
  }

  open(): void {
    this.#current = this.#keep()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#current
  }

  async #keep(): Promise<void> {
    const { db, log, days } = this.#deps
    let nextMs = KEEP_EVERY_MS
    try {
      await keepPartitions(db, days)
    } catch (error) {
      log.warn({ err: error }, 'failed to maintain the partitions of the log of calls; the next try is in a minute')
      nextMs = RETRY_MS
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => this.open(), nextMs)
  }
}

/** The UTC day of a time, `2026-11-26`. */
export function dayOf(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 10)
}

/** Name of the partition of a UTC day. */
export function partitionOf(day: string): string {
  return `call_log_${day.replaceAll('-', '')}`
}

/**
 * Creates missing partitions of these UTC days. A new table is attached, because this takes a lock
 * that does not block reading and writing rows; `create table … partition of` would block both. Any
 * number of processes may do it at once.
 *
 * @throws GatewayError DEPENDENCY_UNAVAILABLE
 */
export async function createPartitions(db: Db, days: string[]): Promise<void> {
  const known = await listPartitions(db)
  for (const day of days.filter((day) => !known.includes(partitionOf(day)))) {
    const [name, next] = [partitionOf(day), dayOf(Date.parse(day) + DAY_MS)]
    await withLock(db, async (transaction) => {
      if ((await listPartitions(transaction)).includes(name)) return
      const table = sql.table(name)
      await sql`create table ${table} (like call_log including defaults including constraints)`.execute(transaction)
      await sql`alter table call_log attach partition ${table}
        for values from (${sql.lit(day)}) to (${sql.lit(next)})`.execute(transaction)
    })
  }
}

/**
 * Partitions of the schema, the oldest first. Includes partitions that are detached but not dropped
 * yet.
 */
export async function listPartitions(db: Db): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
    where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname ~ '^call_log_\\d{8}$'
    order by relname`.execute(db)
  return rows.map(({ name }) => name)
}

/**
 * Creates the partitions of today and the next days, and drops partitions that are older than
 * `days`; if `days` is 0, drops all. A partition is first detached, which locks the whole table for
 * a moment. It is then dropped separately, because removing its files takes longer.
 *
 * @throws the error of Postgres if the lock was not free within 200 ms. The next run continues with
 *   the same partition.
 */
export async function keepPartitions(db: Db, days: number): Promise<void> {
  const { rows } = await sql<{ now: Date }>`select now() as now`.execute(db)
  const now = rows[0]?.now.getTime() ?? Date.now()
  if (days > 0)
    await createPartitions(
      db,
      Array.from({ length: AHEAD_DAYS + 1 }, (_, ahead) => dayOf(now + ahead * DAY_MS)),
    )
  const first = days === 0 ? undefined : partitionOf(dayOf(now - days * DAY_MS))
  for (const name of await listPartitions(db)) {
    if (first !== undefined && name >= first) continue
    await dropPartition(db, name)
  }
}

async function dropPartition(db: Db, name: string): Promise<void> {
  await withLock(db, async (transaction) => {
    const { rows } = await sql`select from pg_class
      where relnamespace = current_schema()::regnamespace and relname = ${name} and relispartition`.execute(transaction)
    if (rows.length > 0) await sql`alter table call_log detach partition ${sql.table(name)}`.execute(transaction)
  })
  await withLock(db, (transaction) => sql`drop table if exists ${sql.table(name)}`.execute(transaction))
}

/**
 * Runs a change while no other process changes partitions. No statement waits long for a lock of
 * the table, because readers and writers would wait behind it. While another process changes
 * partitions, this process waits outside of a transaction, for as long as the change takes.
 */
async function withLock(db: Db, change: (transaction: Db) => Promise<unknown>): Promise<void> {
  const changeIfFree = async (transaction: Db): Promise<boolean> => {
    const isFree = await lockIfFree(transaction)
    if (isFree) await change(transaction)
    return isFree
  }
  while (!(await db.transaction().execute(changeIfFree))) await delay(LOCK_RETRY_MS)
}

async function lockIfFree(transaction: Db): Promise<boolean> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_MS_MAX)}`.execute(transaction)
  const { rows } = await sql<{ isFree: boolean }>`
    select pg_try_advisory_xact_lock(${LOCK}) as "isFree"`.execute(transaction)
  return rows[0]?.isFree === true
}
