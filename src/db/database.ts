import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { GatewayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Database } from './schema.ts'

export type Db = Kysely<Database>

/** Longest a statement may run, milliseconds. */
const STATEMENT_TIMEOUT_MS = 2_000

/** Longest a request waits for a connection of the pool, milliseconds. */
const POOL_WAIT_MS = 1_000

/** Opens the pool of a process. Nothing connects before the first query; a lost Postgres is found again by itself. */
export function openDatabase(url: string, log: Log): Db {
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    connectionTimeoutMillis: POOL_WAIT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: 5_000,
    application_name: 'agent-api-gateway',
  })
  // An idle connection that breaks is dropped from the pool; without a listener it would end the process.
  pool.on('error', (error) => log.warn({ err: error }, 'postgres connection lost'))
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
}

/** SQLSTATE of an error thrown by a query; undefined for anything else. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

export const UNIQUE_VIOLATION = '23505'

/**
 * Runs queries for a request: what Postgres could not do for want of a connection, time or room becomes
 * DEPENDENCY_UNAVAILABLE (503), so that no caller sees SQL or a 500.
 */
export async function query<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    throw isUnavailable(cause) ? new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 2_000, cause }) : cause
  }
}

/** Connection failures and the SQLSTATE classes 08, 53, 57 and 25006 (read-only), which pass by themselves. */
export function isUnavailable(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined)
    return /^(08|53|57)/.test(state) || state === '25006' || state === '40P01' || state === '40001'
  if (!(error instanceof Error)) return false
  const code = Reflect.get(error, 'code')
  return (
    (typeof code === 'string' && /^E(CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_AGAIN)/.test(code)) ||
    /timeout exceeded when trying to connect|Connection terminated|not queryable|ended|query read timeout/i.test(
      error.message,
    )
  )
}
