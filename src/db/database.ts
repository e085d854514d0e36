import { Kysely, PostgresDialect } from 'kysely'
import type { Log } from '../log.ts'
import { BoundedPool } from './bounded-pool.ts'
import type { Database } from './schema.ts'

export { sqlState } from './bounded-pool.ts'

export type Db = Kysely<Database>

/**
 * Opens the pool of a process. Nothing connects before the first query; a lost Postgres is found again by itself. A
 * query that Postgres does not answer within 2 s throws DEPENDENCY_UNAVAILABLE, so no caller sees SQL or a 500.
 */
export function openDatabase(url: string, log: Log, { connectionsMax = 10 } = {}): Db {
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool: new BoundedPool({ url, log, connectionsMax }) }) })
}

export const UNIQUE_VIOLATION = '23505'
