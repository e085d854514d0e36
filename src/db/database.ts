import { Kysely, PostgresDialect, sql } from 'kysely'
import type { Log } from '../log.ts'
import { BoundedPool } from './bounded-pool.ts'
import type { Database } from './schema.ts'

export { sqlState } from './bounded-pool.ts'

export type Db = Kysely<Database>

/**
 * Opens the pool of a process. Nothing connects before the first query; a lost Postgres is found
 * again by itself. A query that Postgres does not answer within 2 s throws DEPENDENCY_UNAVAILABLE,
 * so no caller sees SQL or a 500.
 */
export function openDatabase(url: string, log: Log, { connectionsMax = 10, connectionsMin = 0 } = {}): Db {
  const pool = new BoundedPool({ url, log, connectionsMax, connectionsMin })
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
}

/**
 * Opens connections before they are needed. A busy process takes longer to connect than a request
 * may wait: the first burst of calls would be refused. Never fails: if Postgres is away, the first
 * query connects.
 */
export function openConnections(db: Db, count: number): void {
  for (let opened = 0; opened < count; opened += 1) sql`select 1`.execute(db).catch(() => undefined)
}

export const UNIQUE_VIOLATION = '23505'
