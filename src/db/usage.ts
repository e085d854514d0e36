import { type RawBuilder, sql } from 'kysely'
import { touchApiKeys } from './api-keys.ts'
import { touchConnections } from './connections.ts'
import type { Db } from './database.ts'
import type { Environment } from './schema.ts'

/** The properties by which calls are counted. */
export interface UsageEntry {
  /** UTC day, YYYY-MM-DD. */
  day: string
  accountId: string
  /** Id of the API key, or `session`. */
  key: string
  slug: string
  /** HTTP status with which the call ended. */
  status: number
  mode: Environment
  /**
   * Whether the gateway refused the call, or the call was cancelled before a request was sent. Such
   * a call is shown but never charged.
   */
  isRefused: boolean
}

export interface UsageCount extends UsageEntry {
  calls: number
}

/** Most rows of one statement. Postgres accepts 65 535 values. */
const ROWS_MAX = 5_000

/**
 * Most rows of free calls with key and API, for each account, day and table. Keys can be made and
 * revoked all day, so an account could otherwise make any number of rows by free calls, such as
 * test calls, and a report reads all rows. Further free calls of the day are counted only by status
 * and mode, with the key `other` and the API `-`. Charged calls always keep their key, because the
 * plan limits them.
 */
export const FREE_ROWS_MAX = 200

/**
 * Adds a batch of counts. If the id of the batch is known, the batch was counted already and
 * nothing happens.
 */
export function writeUsageBatch(db: Db, id: string, counts: UsageCount[]): Promise<void> {
  return db.transaction().execute(async (transaction) => {
    const { numInsertedOrUpdatedRows } = await transaction
      .insertInto('usage_batches')
      .values({ id })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    if (!numInsertedOrUpdatedRows) return
    await addCounts(transaction, 'usage_daily', counts.filter(({ isRefused }) => !isRefused)) // biome-ignore format: one table each
    await addCounts(transaction, 'refusals_daily', counts.filter(({ isRefused }) => isRefused)) // biome-ignore format: one table each
    const used = [...new Set(counts.map(({ key }) => key))].filter((key) => key !== 'session').sort()
    await touchApiKeys(transaction, used)
    await touchConnections(transaction, used)
  })
}

async function addCounts(db: Db, table: 'usage_daily' | 'refusals_daily', counts: UsageCount[]): Promise<void> {
  // The order is fixed, so that two concurrent batches cannot deadlock.
  const rows = counts
    .map(({ day, accountId, key, slug, status, mode, calls }) => ({
      day,
      user_id: accountId,
      key,
      slug,
      status,
      mode,
      calls,
    }))
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  for (let start = 0; start < rows.length; start += ROWS_MAX) {
    await addRows(db, table, rows.slice(start, start + ROWS_MAX))
  }
}

type UsageRow = Omit<UsageCount, 'accountId' | 'isRefused'> & { user_id: string }

/** Adds counts to existing rows, and inserts new rows as far as FREE_ROWS_MAX allows. */
async function addRows(db: Db, table: 'usage_daily' | 'refusals_daily', rows: UsageRow[]): Promise<void> {
  const isCharged = table === 'usage_daily' ? sql`mode = 'live' and status < 500` : sql`false`
  await sql`
    with given as (
      select * from json_to_recordset(${JSON.stringify(rows)}) as row
        (day date, user_id uuid, key text, slug text, status smallint, mode text, calls bigint)),
    kept as (
      select user_id, day, count(*) as rows from ${sql.table(table)}
      where (user_id, day) in (select user_id, day from given) and not (${isCharged}) group by user_id, day),
    ranked as (
      select given.*, ${isCharged} as is_charged, known.calls is not null as is_known, coalesce(kept.rows, 0)
        + row_number() over (partition by user_id, day, ${isCharged}, known.calls is not null) as place
      from given left join kept using (user_id, day)
        left join (select user_id, day, key, slug, status, mode, calls from ${sql.table(table)}) as known
          using (user_id, day, key, slug, status, mode))
    insert into ${sql.table(table)} (user_id, day, key, slug, status, mode, calls)
      select user_id, day, kept_key, kept_slug, status, mode, sum(calls) from (
        select *, case when is_kept then key else 'other' end as kept_key, case when is_kept then slug else '-' end as kept_slug
        from (select *, is_charged or is_known or place <= ${sql.lit(FREE_ROWS_MAX)} as is_kept from ranked) as decided
      ) as named
      group by user_id, day, kept_key, kept_slug, status, mode
      order by user_id, day, kept_key, kept_slug, status, mode
    on conflict (user_id, day, key, slug, status, mode)
      do update set calls = ${sql.table(table)}.calls + excluded.calls`.execute(db)
}

/**
 * Counts the calls that count against the monthly quota: live calls that did not end with 5xx and
 * are no refusals (`isRefused`).
 * @param month YYYY-MM
 * @param credentialId counts only the calls of this connection, or of this key and the keys that
 *   replaced it
 */
export async function countMonthUsage(
  db: Db,
  { userId, credentialId }: { userId: string; credentialId?: string | undefined },
  month: string,
): Promise<number> {
  const first = `${month}-01`
  const row = await db
    .selectFrom('usage_daily')
    .select(({ fn }) => fn.coalesce(fn.sum<string>('calls'), sql<string>`0`).as('calls'))
    .where('user_id', '=', userId)
    .where('day', '>=', first)
    .where(sql<boolean>`day < ${first}::date + interval '1 month'`)
    .where('mode', '=', 'live')
    .where('status', '<', 500)
    .$if(credentialId !== undefined, (select) =>
      select.where(
        sql<boolean>`key in (select id::text from api_keys where limits_id = ${credentialId}::uuid union all select ${credentialId})`,
      ),
    )
    .executeTakeFirst()
  return Number(row?.calls ?? 0)
}

export type UsageGroup = 'day' | 'api' | 'key' | 'status' | 'mode' | 'charged'

/** One line of a usage report. It has the members by which the report is grouped. */
export interface UsageLine {
  day?: string
  api?: string
  key?: string
  status?: number
  mode?: 'live' | 'test'
  /** Whether the calls count against the monthly quota. */
  charged?: boolean
  calls: number
}

const GROUPS: Record<UsageGroup, RawBuilder<unknown>> = {
  day: sql`to_char(day, 'YYYY-MM-DD')`,
  api: sql`slug`,
  key: sql`key`,
  status: sql`status`,
  mode: sql`mode`,
  charged: sql`not refused and mode = 'live' and status < 500`,
}

/** Which lines of a report to read. */
export interface UsageRange {
  /** UTC days, both inclusive. */
  from: string
  to: string
  groupBy: UsageGroup[]
  limit: number
  /** The values of the line before the first line to read, in the order of `groupBy`. */
  after: string[] | undefined
}

/**
 * Calls of an account, including refused calls, grouped and ordered by the given members. Returns
 * one line more than the limit if there are more. `total` is the number of calls of all lines.
 */
export async function groupUsage(
  db: Db,
  userId: string,
  { from, to, groupBy, limit, after }: UsageRange,
): Promise<{ total: number; lines: UsageLine[] }> {
  const columns = groupBy.map((group) => sql`${GROUPS[group]} as ${sql.id(group)}`)
  const order = sql.join(groupBy.map((group) => sql.id(group)))
  // Values are compared as text, which sorts in the same order. A value of a caller that Postgres
  // cannot parse then does no harm.
  const position = sql.join(groupBy.map((group) => sql`${sql.id(group)}::text`))
  const isAfter = after === undefined ? sql`true` : sql`row(${position}) > row(${sql.join(after)})`
  const { rows } = await sql<{ total: string; lines: UsageLine[] }>`
    with grouped as materialized (
      select ${sql.join([...columns, sql`sum(calls) as calls`])} from (
        select *, false as refused from usage_daily union all select *, true from refusals_daily) as counted
      where user_id = ${userId} and day >= ${from} and day <= ${to}
      group by ${sql.join(groupBy.map((_, index) => sql.lit(index + 1)))}),
    page as (select * from grouped where ${isAfter} order by ${order} limit ${limit + 1})
    select (select coalesce(sum(calls), 0) from grouped) as total,
      (select coalesce(json_agg(page order by ${order}), '[]') from page) as lines`.execute(db)
  return { total: Number(rows[0]?.total), lines: rows[0]?.lines ?? [] }
}
