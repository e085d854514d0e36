import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, PostgresDialect } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import pg from 'pg'
import { ConfigError, loadDatabaseUrl, loadNameServers } from '../config.ts'
import { useNameServers } from '../net/name-server.ts'
import { isTlsCode } from '../net/tls-code.ts'
import { openClient, PostgresAccess } from './postgres-access.ts'
import { listExecuted, listMigrations, MIGRATIONS } from './schema-version.ts'

/**
 * How long the command waits for a Postgres that does not answer yet, and how often it tries.
 * Milliseconds.
 */
const WAIT_MS_MAX = 60_000
const TRY_EVERY_MS = 1_000

/**
 * Brings the schema up to date. Any number of nodes may do it at once: one holds the advisory lock,
 * the others wait on connections of their own, which have no statement time-out.
 *
 * A schema that a newer version has migrated is left as it is, because every version runs on the
 * schema of the next.
 *
 * @returns names of the migrations that ran, and of migrations that only a newer version knows
 * @throws Error naming the migration that failed; the schema is then as before
 */
export async function migrate(databaseUrl: string): Promise<{ ran: string[]; newer: string[] }> {
  const access = new PostgresAccess(databaseUrl)
  await (await openClient(access)).end()
  const pool = new pg.Pool({ ...access.options, max: 1 })
  // A connection that is lost between two statements shows in the next statement; without listeners
  // it would end the process.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
  try {
    const newer = await listNewer(db)
    const { error, results = [] } = await new Migrator({
      db,
      provider: { getMigrations: () => loadMigrations(newer) },
    }).migrateToLatest()
    const broken = results.find((result) => result.status === 'Error')
    if (broken) throw new Error(`migration ${broken.migrationName} failed`, { cause: error })
    if (error) throw error
    return { ran: results.map((result) => result.migrationName), newer }
  } finally {
    await db.destroy()
  }
}

/** The migrations of newer versions that the database has. */
async function listNewer(db: Kysely<unknown>): Promise<string[]> {
  const [known, ran] = await Promise.all([listMigrations(), listExecuted(db)])
  return ran.filter((name) => !known.includes(name))
}

/**
 * The migrator insists on a file for each migration that ever ran: the files of newer versions do
 * nothing.
 */
async function loadMigrations(newer: string[]): Promise<Record<string, Migration>> {
  const nothing: Migration = { up: async () => undefined }
  const migrations: Record<string, Migration> = Object.fromEntries(newer.map((name) => [name, nothing]))
  for (const name of await listMigrations()) migrations[name] = await import(new URL(`${name}.ts`, MIGRATIONS).href)
  return migrations
}

/**
 * Waits until Postgres answers.
 *
 * @throws Error in one sentence if it does not in time, or refuses
 */
async function awaitPostgres(databaseUrl: string): Promise<void> {
  const { host } = new URL(databaseUrl)
  const end = performance.now() + WAIT_MS_MAX
  const access = new PostgresAccess(databaseUrl)
  for (let isFirst = true; ; isFirst = false) {
    try {
      const client = await openClient(access)
      await client.end().catch(() => undefined)
      return
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message || String(Reflect.get(cause, 'code')) : String(cause)
      // The server has answered: a wrong password, no such database. 57P03: it starts.
      const isRefused = cause instanceof pg.DatabaseError && cause.code !== '57P03'
      if (isRefused || isTlsCode(String(Object(cause).code)))
        throw new Error(`Postgres at ${host} cannot be used: ${reason}`, { cause })
      if (performance.now() > end) throw new Error(`Postgres at ${host} does not answer: ${reason}`, { cause })
      if (isFirst) console.log(`Postgres at ${host} does not answer yet (${reason}); trying for a minute …`)
      await delay(TRY_EVERY_MS)
    }
  }
}

/**
 * The command: migrates, and says in one sentence what came of it.
 * @returns the exit code
 */
async function main(): Promise<number> {
  try {
    const databaseUrl = loadDatabaseUrl()
    useNameServers(loadNameServers())
    await awaitPostgres(databaseUrl)
    const { ran, newer } = await migrate(databaseUrl)
    console.log(ran.length === 0 ? 'The schema is up to date.' : `Migrated: ${ran.join(', ')}`)
    if (newer.length > 0) console.log(`The schema is newer than this version, which runs on it: ${newer.join(', ')}`)
    return 0
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error(String(error))
    const isOfMigration = message.startsWith('migration ')
    console.error(`release: ${message}`, ...(isOfMigration && !(error instanceof ConfigError) ? [cause] : []))
    return 1
  }
}

if (import.meta.main) {
  // As process 1 of a container it would ignore them.
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(1))
  process.exit(await main())
}
