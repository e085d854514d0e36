import { readdir } from 'node:fs/promises'
import { type Kysely, sql } from 'kysely'
import type { Db } from './database.ts'
import { sqlState } from './postgres-errors.ts'

/** The folder of all migrations; the file name without its ending is the name of a migration. */
export const MIGRATIONS = new URL('../../migrations/', import.meta.url)

const NO_SUCH_TABLE = '42P01'

/** The names of the migrations that this version knows, in order. */
export async function listMigrations(): Promise<string[]> {
  const files = await readdir(MIGRATIONS)
  return files
    .filter((name) => name.endsWith('.ts'))
    .map((name) => name.slice(0, -'.ts'.length))
    .sort()
}

/**
 * The names of the migrations that a database has; empty if it has no table of migrations yet.
 *
 * @throws what the query throws
 */
export async function listExecuted(db: Kysely<unknown>): Promise<string[]> {
  try {
    const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db)
    return rows.map(({ name }) => name)
  } catch (error) {
    if (sqlState(error) === NO_SUCH_TABLE) return []
    throw error
  }
}

/**
 * Whether the database has every migration that this version needs. A newer database has them too,
 * because a migration never removes anything that the previous version uses.
 *
 * @throws what the query throws
 */
export async function isSchemaUpToDate(db: Db, wanted: string[]): Promise<boolean> {
  try {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from kysely_migration where name = any(${wanted})`.execute(db)
    return rows[0]?.count === wanted.length
  } catch (error) {
    if (sqlState(error) === NO_SUCH_TABLE) return false
    throw error
  }
}
