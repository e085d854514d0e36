import { readdir } from 'node:fs/promises'
import { Kysely, PostgresDialect } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import pg from 'pg'
import { loadDatabaseUrl } from '../config.ts'

const FOLDER = new URL('../../migrations/', import.meta.url)

/**
 * Brings the schema up to date. Any number of nodes may do it at once: one holds the advisory lock, the others wait on
 * connections of their own, which have no statement time-out.
 *
 * @returns names of the migrations that ran
 * @throws Error naming the migration that failed; the schema is then as before
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const db = new Kysely({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: databaseUrl, max: 1 }) }),
  })
  try {
    const { error, results = [] } = await new Migrator({
      db,
      provider: { getMigrations: loadMigrations },
    }).migrateToLatest()
    const broken = results.find((result) => result.status === 'Error')
    if (error) throw new Error(`migration ${broken?.migrationName ?? ''} failed`, { cause: error })
    return results.map((result) => result.migrationName)
  } finally {
    await db.destroy()
  }
}

async function loadMigrations(): Promise<Record<string, Migration>> {
  const migrations: Record<string, Migration> = {}
  for (const file of (await readdir(FOLDER)).filter((name) => name.endsWith('.ts')).sort()) {
    migrations[file.slice(0, -'.ts'.length)] = await import(new URL(file, FOLDER).href)
  }
  return migrations
}

if (import.meta.main) {
  const names = await migrate(loadDatabaseUrl())
  console.log(names.length === 0 ? 'The schema is up to date.' : `Migrated: ${names.join(', ')}`)
}
