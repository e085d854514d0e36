import { Kysely, PostgresDialect, sql } from 'kysely'
import type { Log } from '../log.ts'
import { BoundedPool } from './bounded-pool.ts'
import type { Database } from './schema.ts'

export type Db = Kysely<Database>

/**
 * Opens the pool of a process. The first query opens the first connection, and a lost connection is
 * replaced automatically. If Postgres does not answer a query within 2 s, the query throws
 * DEPENDENCY_UNAVAILABLE, so that no caller sees SQL or a 500.
 */
export function openDatabase(url: string, log: Log, { connectionsMax = 10, connectionsMin = 0 } = {}): Db {
  const pool = new BoundedPool({ url, log, connectionsMax, connectionsMin })
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
}

/**
 * Opens connections before they are needed. Without this, the first calls of a busy process could
 * be refused, because connecting then takes longer than a request may wait. Never fails: if
 * Postgres is away, the first query connects.
 */
export function openConnections(db: Db, count: number): void {
  for (let opened = 0; opened < count; opened += 1) sql`select 1`.execute(db).catch(() => undefined)
}
