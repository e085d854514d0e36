import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, PostgresDialect } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import pg from 'pg'
import { ConfigError, loadDatabaseUrl, loadNameServers } from '../config.ts'
import { useNameServers } from '../net/name-server.ts'
import { isTlsCode } from '../net/tls-code.ts'
import { openClient, PostgresAccess } from './postgres-access.ts'
import { listExecuted, listMigrations, MIGRATIONS } from './schema-version.ts'

/** How long the command waits for Postgres to answer, and how often it tries, milliseconds. */
const WAIT_MS_MAX = 60_000
const TRY_EVERY_MS = 1_000

/**
 * Brings the schema up to date. Any number of nodes may run it at once: one holds the advisory
 * lock, and the others wait on their own connections, which have no statement time-out.
 *
 * If a newer version has already migrated the schema, it stays as it is, because every version runs
 * on the schema of the next version.
 *
 * @returns the names of the migrations that ran, and of the migrations that only a newer version
 *   knows
 * @throws Error that names the migration that failed; the schema is then unchanged
 */
export async function migrate(databaseUrl: string): Promise<{ ran: string[]; newer: string[] }> {
  const access = new PostgresAccess(databaseUrl)
  await (await openClient(access)).end()
  const pool = new pg.Pool({ ...access.options, max: 1 })
  // If a connection is lost between two statements, the next statement fails. Without listeners the
  // error would end the process.
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
 * The migrator demands a file for each migration that ever ran. Migrations of newer versions get a
 * stand-in that does nothing.
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
 * @throws Error with one sentence if Postgres does not answer in time, or refuses
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
      // The server has answered with an error, such as a wrong password or a missing database.
      // 57P03 means that it is starting.
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
 * The command line: migrates, and prints the result in one sentence.
 * @returns the exit code
 */
async function main(args: string[]): Promise<number> {
  try {
    // Somebody who types --help or --dry-run wants no migration.
    if (args.length > 0) throw new Error(`nothing was done: migrate accepts no argument, not "${args.join(' ')}"`)
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
  // As process 1 of a container, Node would ignore these signals.
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(1))
  process.exit(await main(process.argv.slice(2)))
}
