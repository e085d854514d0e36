import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'

/** Calls of an account to an API on a UTC day. */
export interface ApiUsage {
  day: string
  slug: string
  calls: number
  /** Calls that were answered with 4xx or cancelled. */
  refused: number
  /** Calls that were answered with 5xx, including calls that were never queued. */
  failed: number
}

/**
 * Calls of an account since a UTC day, by day and API. The latest day comes first, and within a day
 * the API with the most calls.
 */
export async function usageByApi(db: Db, accountId: string, from: string): Promise<ApiUsage[]> {
  const { rows } = await sql<ApiUsage>`
    select to_char(day, 'YYYY-MM-DD') as day, slug, ${SUMS} from ${counted(sql`user_id = ${accountId} and day >= ${from}::date`)}
    group by day, slug order by day desc, calls desc, slug`.execute(db)
  return rows
}

export interface AccountUsage extends Omit<ApiUsage, 'slug' | 'day'> {
  id: string
  /** Email address; null if the account was deleted. */
  email: string | null
}

/** The accounts with the most calls of an API on a UTC day. */
export async function accountsOfApi(
  db: Db,
  { slug, day }: { slug: string; day: string },
  countMax: number,
): Promise<AccountUsage[]> {
  const { rows } = await sql<AccountUsage>`
    select users.email, of_api.* from (
      select user_id as id, ${SUMS} from ${counted(sql`day = ${day}::date and slug = ${slug}`)}
      group by user_id order by calls desc, user_id limit ${sql.lit(countMax)}) as of_api
    left join users on users.id = of_api.id
    order by calls desc, of_api.id`.execute(db)
  return rows
}

const SUMS = sql`sum(calls)::int as calls, coalesce(sum(calls) filter (where status between 400 and 499), 0)::int as refused,
  coalesce(sum(calls) filter (where status >= 500), 0)::int as failed`

function counted(condition: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`(
    select * from usage_daily where ${condition}
    union all select * from refusals_daily where ${condition}) as counted`
}
