import { type RawBuilder, sql } from 'kysely'
import type { Log } from '../log.ts'
import type { Db } from './database.ts'

/**
 * How often old rows are deleted, milliseconds. A step that failed or did not finish continues
 * after the same time.
 */
const CLEAN_EVERY_MS = 600_000

/** How long usage is kept, days. A report of a whole year can still be made a month later. */
const USAGE_DAYS = 400

/** Rows that one statement deletes, so that it stays far below its time limit. */
const BATCH_ROWS = 1_000

/** Statements of one step in a row. The next run deletes the rest. */
const BATCHES_MAX = 200

interface OldRowsDeps {
  db: Db
  config: { auditDays: number }
  log: Pick<Log, 'warn'>
}

/**
 * Deletes old rows every ten minutes. Each node runs it. Nodes that run it at once delete different
 * rows.
 */
export class OldRowsCleaner {
  readonly #deps: OldRowsDeps
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #current: Promise<void> | undefined

  constructor(deps: OldRowsDeps) {
    this.#deps = deps
  }

  open(): void {
    this.#timer = setInterval(() => {
      this.#current ??= deleteOldRows(this.#deps, this.#closing.signal).finally(() => {
        this.#current = undefined
      })
    }, CLEAN_EVERY_MS)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#closing.abort()
    await this.#current
  }
}

/**
 * Deletes old rows of every table in batches. A failure in one table does not stop the others.
 * Never rejects.
 */
export async function deleteOldRows({ db, config, log }: OldRowsDeps, signal?: AbortSignal): Promise<void> {
  for (const { table, changeBatch } of [...STEPS, ofAudit(config)]) {
    try {
      for (let batch = 0; batch < BATCHES_MAX && !signal?.aborted; batch += 1) {
        const { numAffectedRows = 0n } = await changeBatch.execute(db)
        if (numAffectedRows < BATCH_ROWS) break
      }
    } catch (error) {
      log.warn({ err: error, table }, 'failed to delete old rows; the next try is in ten minutes')
    }
  }
}

interface Step {
  table: string
  changeBatch: RawBuilder<unknown>
}

/**
 * The order matters: a connection ends when its tokens are gone, and an application that nobody has
 * used for a week is kept while it has connections.
 */
const STEPS: Step[] = [
  // Nobody can still hold the id of such an old batch.
  deletion('usage_batches', sql`written_at < now() - interval '7 days'`),
  deletion('usage_daily', sql`day < (now() at time zone 'UTC')::date - ${sql.lit(USAGE_DAYS)}`),
  deletion('refusals_daily', sql`day < (now() at time zone 'UTC')::date - ${sql.lit(USAGE_DAYS)}`),
  deletion('sessions', sql`expires_at < now() - interval '30 days'`),
  deletion('account_links', sql`expires_at < now()`),
  deletion('api_keys', sql`least(revoked_at, expires_at) < now() - interval '30 days'`),
  deletion('oauth_artifacts', sql`expires_at < now()`),
  // Ends connections without tokens. Nobody can use such a connection, and it would count against
  // its account's limit for ever. A working connection always has tokens: its code is stored right
  // after the connection, and a refresh token stays until it expires, even after its use.
  {
    table: 'connections',
    changeBatch: sql`update connections set revoked_at = now() where ctid = any(${batchOf(
      'connections',
      sql`revoked_at is null and created_at < now() - interval '1 hour'
        and not exists (select from oauth_artifacts where connection_id = connections.id
          and kind in ('AuthorizationCode', 'AccessToken', 'RefreshToken'))`,
    )})`,
  },
  deletion('connections', sql`revoked_at < now() - interval '30 days'`),
  // Deletes applications that nobody has used for 90 days, or for a week if no account has
  // connected them lately. The week lets a user return to the consent page. An application keeps
  // its id and would not learn that it was deleted.
  deletion('oauth_clients', sql`last_used_at < now() - interval '90 days'`),
  // This is a step of its own, because with an `or` Postgres may read all connections for each
  // application.
  deletion(
    'oauth_clients',
    sql`last_used_at < now() - interval '7 days'
      and not exists (select from connections where client_id = oauth_clients.id)`,
  ),
]

/** The table is small, because operators change little. */
function ofAudit({ auditDays }: OldRowsDeps['config']): Step {
  return deletion('audit_log', sql`at < now() - make_interval(days => ${sql.lit(auditDays)})`)
}

function deletion(table: string, isOld: RawBuilder<unknown>): Step {
  return { table, changeBatch: sql`delete from ${sql.table(table)} where ctid = any(${batchOf(table, isOld)})` }
}

/** The rows of a batch. Rows that another node is changing are left out. */
function batchOf(table: string, isOld: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`array(select ctid from ${sql.table(table)} where ${isOld} limit ${sql.lit(BATCH_ROWS)} for update skip locked)`
}
