import { sql } from 'kysely'
import type { Db } from './database.ts'
import type { ApiKey, CallRow, Connection, Environment, ProviderKey, Role, Team } from './schema.ts'

/**
 * Everything that the database has about an account, except its usage. Keys and connections that
 * have ended are included for 30 days.
 */
export interface AccountRows {
  keys: ApiKey[]
  connections: Connection[]
  sessions: { createdAt: Date; expiresAt: Date; revokedAt: Date | null }[]
  identities: { issuer: string; subject: string; createdAt: Date }[]
  teams: (Team & { role: Role })[]
  providerKeys: ProviderKey[]
}

export async function readAccountRows(db: Db, userId: string): Promise<AccountRows> {
  return {
    keys: await db.selectFrom('api_keys').selectAll().where('user_id', '=', userId).orderBy('created_at').execute(),
    connections: await db
      .selectFrom('connections')
      .selectAll()
      .where('user_id', '=', userId)
      .orderBy('created_at')
      .execute(),
    sessions: await db
      .selectFrom('sessions')
      .select(['created_at as createdAt', 'expires_at as expiresAt', 'revoked_at as revokedAt'])
      .where('user_id', '=', userId)
      .orderBy('created_at')
      .execute(),
    identities: await db
      .selectFrom('identities')
      .select(['issuer', 'subject', 'created_at as createdAt'])
      .where('user_id', '=', userId)
      .execute(),
    teams: await db
      .selectFrom('teams')
      .innerJoin('team_members', 'team_members.team_id', 'teams.id')
      .selectAll('teams')
      .select('team_members.role')
      .where('team_members.user_id', '=', userId)
      .orderBy('teams.created_at')
      .execute(),
    providerKeys: await db
      .selectFrom('provider_keys')
      .selectAll()
      .where('user_id', '=', userId)
      .orderBy('slug')
      .execute(),
  }
}

/** The number of calls of one day, for each combination of key, API, status and mode. */
export interface UsageRow {
  day: string
  key: string
  api: string
  status: number
  mode: Environment
  calls: number
}

/** Rows that one statement reads, so that it stays far below its time limit. */
const PAGE_ROWS = 2_000

/**
 * All usage of an account, page by page, in the order of the primary key. A page is read when the
 * caller has taken the previous page.
 */
export async function* readUsagePages(
  db: Db,
  table: 'usage_daily' | 'refusals_daily',
  userId: string,
): AsyncGenerator<UsageRow[]> {
  for (let last: UsageRow | undefined; ; ) {
    const after = last
      ? sql`(day, key, slug, status, mode) > (${last.day}::date, ${last.key}, ${last.api}, ${last.status}, ${last.mode})`
      : sql`true`
    const { rows } = await sql<UsageRow>`
      select to_char(day, 'YYYY-MM-DD') as day, key, slug as api, status::int, mode, calls::float8 as calls
      from ${sql.table(table)} where user_id = ${userId} and ${after}
      order by day, key, slug, status, mode limit ${sql.lit(PAGE_ROWS)}`.execute(db)
    if (rows.length > 0) yield rows
    if (rows.length < PAGE_ROWS) return
    last = rows.at(-1)
  }
}

/** Most rows of the log of calls in an export, newest first. `GET /v1/logs` has the older rows. */
export const EXPORTED_CALLS_MAX = 10_000

/** The newest rows of an account in the log of calls, in pages. */
export async function* readCallPages(db: Db, userId: string): AsyncGenerator<CallRow[]> {
  let last: CallRow | undefined
  for (let count = 0; count < EXPORTED_CALLS_MAX; count += PAGE_ROWS) {
    const rows: CallRow[] = await db
      .selectFrom('call_log')
      .selectAll()
      .where('account_id', '=', userId)
      .$if(last !== undefined, (select) =>
        select.where(sql<boolean>`(at, id) < (${last?.at}::timestamptz, ${last?.id}::uuid)`),
      )
      .orderBy('at', 'desc')
      .orderBy('id', 'desc')
      .limit(PAGE_ROWS)
      .execute()
    if (rows.length > 0) yield rows
    if (rows.length < PAGE_ROWS) return
    last = rows.at(-1)
  }
}
