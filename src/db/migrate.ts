import { setTimeout as delay } from 'node:timers/promises'
import { Kysely, PostgresDialect } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import pg from 'pg'
import { retryUntil } from '../async/retry-until.ts'
import { ConfigError, loadDatabaseUrl, loadNameServers } from '../config.ts'
import { useNameServers } from '../net/name-server.ts'
import { isTlsCode } from '../net/tls-code.ts'
import { openClient, PostgresAccess } from './postgres-access.ts'
import { sqlState } from './postgres-errors.ts'
import { listExecuted, listMigrations, MIGRATIONS } from './schema-version.ts'

/** How long the command waits for Postgres to answer, and how often it tries, milliseconds. */
const WAIT_MS_MAX = 60_000
const TRY_EVERY_MS = 1_000

/**
 * Longest that a migration waits for the lock of a table, milliseconds. Queries of processes that
 * serve wait behind it for as long.
 */
const LOCK_MS_MAX = 500

/**
 * How long, and how often, migrations that got no lock are tried again, milliseconds. A dump keeps
 * its locks until its end.
 */
const LOCKED_MS_MAX = 600_000
const LOCKED_EVERY_MS = 1_000

/** SQLSTATEs of a lock that was not free in time, and of a deadlock. */
const LOCKED = ['55P03', '40P01']

/**
 * Brings the schema up to date. Any number of nodes may run it at once: one holds the advisory
 * lock, and the others wait on their own connections, which have no statement time-out.
 *
 * If a newer version has already migrated the schema, it stays as it is, because every version runs
 * on the schema of the next version.
 *
 * @param tell gets a sentence for the operator if the migrations wait for another session, or if
 *   the schema is newer
 * @returns the names of the migrations that ran, and of the migrations that only a newer version
 *   knows
 * @throws Error that names the migration that failed; the schema is then unchanged
 */
export async function migrate(databaseUrl: string, tell: (words: string) => void = () => undefined): Promise<Migrated> {
  let isTold = false
  const mayRepeat = (error: unknown): boolean => {
    if (!(error instanceof LockedError)) return false
    if (!isTold) tell('Another session, such as a dump, uses a table that a migration changes; trying again …')
    isTold = true
    return true
  }
  const { ran, newer } = await retryUntil(() => migrateOnce(databaseUrl), {
    everyMs: LOCKED_EVERY_MS,
    forMs: LOCKED_MS_MAX,
    mayRepeat,
  })
  if (newer.length > 0) tell(`The schema is newer than this version, which runs on it: ${newer.join(', ')}`)
  return { ran, newer }
}

interface Migrated {
  ran: string[]
  newer: string[]
}

/** A migration did not get the lock of a table. */
class LockedError extends Error {}

async function migrateOnce(databaseUrl: string): Promise<Migrated> {
  const access = new PostgresAccess(databaseUrl, { statementMs: 0, idleInTransactionMs: 0, lockMs: LOCK_MS_MAX })
  await (await openClient(access)).end()
  const pool = new pg.Pool({ ...access.options, max: 1, onConnect: liftTransactionLimit })
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
    if (broken && LOCKED.includes(sqlState(error) ?? ''))
      throw new LockedError(
        `another session, such as a dump, keeps a table that the migration ${broken.migrationName} changes. The schema is unchanged; migrate again when this session has ended`,
        { cause: error },
      )
    if (broken) throw new Error(`migration ${broken.migrationName} failed`, { cause: error })
    if (error) throw error
    return { ran: results.map((result) => result.migrationName), newer }
  } finally {
    await db.destroy()
  }
}

/** Postgres has the setting since version 17. All migrations run in the same transaction. */
async function liftTransactionLimit(client: pg.ClientBase): Promise<void> {
  await client.query(`select set_config(name, '0', false) from pg_settings where name = 'transaction_timeout'`)
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
    const { ran } = await migrate(databaseUrl, console.log)
    console.log(ran.length === 0 ? 'The schema is up to date.' : `Migrated: ${ran.join(', ')}`)
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
