import pg from 'pg'
import { memoize } from '../../src/async/memoize.ts'

/**
 * Connections of the tests themselves to a database. The files of a process share them. They wait
 * for a busy machine as long as necessary, stay open because a new connection costs more than most
 * statements, and keep no process alive.
 */
export const poolOf = memoize(
  (databaseUrl: string) => databaseUrl,
  (databaseUrl) => {
    const pool = new pg.Pool({ connectionString: databaseUrl, max: 2, idleTimeoutMillis: 0, allowExitOnIdle: true })
    // A file may drop the database, or end its Postgres, while connections are idle.
    pool.on('error', () => undefined)
    return pool
  },
)
