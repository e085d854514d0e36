import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'
import type { CallRow, CallVia, Environment } from './schema.ts'

/** A row with the names of what made the call. */
export interface ListedCallRow extends CallRow {
  /** Null for a key that has been deleted, and for a session. */
  key_label: string | null
  key_last_four: string | null
  /** Name of the application whose connection made the call. */
  application: string | null
  /** Address of the account; null if the account is gone. */
  email: string | null
}

/** Which calls are listed; what is absent restricts nothing. */
export interface CallFilter {
  accountId?: string | undefined
  /** Calls of this team's keys alone. */
  teamId?: string | undefined
  from?: Date | undefined
  /** Exclusive. */
  to?: Date | undefined
  slug?: string | undefined
  endpoint?: string | undefined
  /** First and last status, both included. */
  status?: [first: number, last: number] | undefined
  code?: string | undefined
  /** Calls with an error alone. */
  isFailure?: boolean
  /** Id of a key or of a connection, or `session`. */
  key?: string | undefined
  mode?: Environment | undefined
  via?: CallVia | undefined
  tool?: string | undefined
}

/** Where a call stands in the list: later calls come first. */
export interface CallPosition {
  /** Milliseconds since the epoch. */
  at: number
  id: string
}

export interface CallPage {
  calls: ListedCallRow[]
  /** Where the next page begins; undefined if there are no further calls. */
  next: CallPosition | undefined
}

/**
 * Calls that a page reads at most: a filter that fits few of a million calls would otherwise read
 * all of them. A page may therefore have fewer calls than its limit, or none, although others come
 * after it.
 */
const READ_MAX = 20_000

/** Calls of one request: a batch has at most fifty. */
const REQUEST_CALLS_MAX = 100

/**
 * The calls that fit, newest first. Each page takes about the same time, whatever the filter and
 * however many calls there are.
 */
export async function listCalls(
  db: Db,
  filter: CallFilter,
  { limit, after }: { limit: number; after: CallPosition | undefined },
): Promise<CallPage> {
  const bounds = boundsOf(filter, after)
  const conditions = conditionsOf(filter)
  const read = sql`select * from call_log where ${bounds} order by at desc, id desc`
  const { rows } = await sql<ListedCallRow>`
    ${named(sql`select * from (${read} limit ${sql.lit(READ_MAX)}) as read
      where ${sql.join(conditions, sql` and `)} order by at desc, id desc limit ${sql.lit(limit + 1)}`)}
    order by page.at desc, page.id desc`.execute(db)
  const calls = rows.slice(0, limit)
  if (rows.length > limit) return { calls, next: positionOf(calls.at(-1)) }
  // Without conditions the page has all that was read.
  if (conditions.length === 1) return { calls, next: undefined }
  const { rows: last } = await sql<Pick<CallRow, 'at' | 'id'>>`
    select at, id from call_log where ${bounds} order by at desc, id desc
    offset ${sql.lit(READ_MAX - 1)} limit 1`.execute(db)
  return { calls, next: positionOf(last[0]) }
}

/**
 * Whose calls may be seen: the calls of an account and of the keys of teams that it manages, or
 * all.
 */
export type CallViewer = { accountId: string } | 'operator'

/** The call with an id, or the calls of a request with an id, in the order in which they ended. */
export async function findCallsById(
  db: Db,
  { kind, uuid }: { kind: 'call' | 'req'; uuid: string },
  viewer: CallViewer,
): Promise<ListedCallRow[]> {
  const condition = kind === 'call' ? sql`id = ${uuid}` : sql`request_id = ${uuid}`
  const isSeen = viewer === 'operator' ? sql`true` : isSeenBy(viewer.accountId)
  const { rows } = await sql<ListedCallRow>`
    ${named(sql`select * from call_log where ${condition} and ${isSeen} limit ${sql.lit(REQUEST_CALLS_MAX)}`)}
    order by page.at, page.id`.execute(db)
  return rows
}

function isSeenBy(accountId: string): RawBuilder<unknown> {
  return sql`(account_id = ${accountId} or key_id in (
    select api_keys.id from api_keys join team_members using (team_id)
    where team_members.user_id = ${accountId} and team_members.role in ('owner', 'admin')))`
}

/** Rows of a page with the names that belong to them. */
function named(page: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    select page.*, api_keys.label as key_label, api_keys.last_four as key_last_four,
      connections.client_name as application, users.email
    from (${page}) as page
      left join api_keys on api_keys.id = page.key_id
      left join connections on connections.id = page.key_id
      left join users on users.id = page.account_id`
}

/**
 * What an index finds. The moment of the position stands there alone too, because partitions are
 * chosen by it.
 */
function boundsOf({ accountId, from, to }: CallFilter, after: CallPosition | undefined): RawBuilder<unknown> {
  const bounds = [sql`true`]
  if (accountId !== undefined) bounds.push(sql`account_id = ${accountId}`)
  if (from !== undefined) bounds.push(sql`at >= ${from}`)
  if (to !== undefined) bounds.push(sql`at < ${to}`)
  if (after !== undefined) {
    const at = new Date(after.at)
    bounds.push(sql`at <= ${at} and (at, id) < (${at}, ${after.id}::uuid)`)
  }
  return sql.join(bounds, sql` and `)
}

function conditionsOf(filter: CallFilter): RawBuilder<unknown>[] {
  const { teamId, slug, endpoint, status, code, key, mode, via, tool } = filter
  const conditions = [sql`true`]
  const equal = { slug, endpoint, code, mode, via, tool }
  for (const [column, value] of Object.entries(equal)) {
    if (value !== undefined) conditions.push(sql`${sql.ref(column)} = ${value}`)
  }
  if (filter.isFailure) conditions.push(sql`code is not null`)
  if (status !== undefined) conditions.push(sql`status between ${status[0]} and ${status[1]}`)
  if (key !== undefined) conditions.push(key === 'session' ? sql`key_id is null` : sql`key_id = ${key}::uuid`)
  if (teamId !== undefined) conditions.push(sql`key_id in (select id from api_keys where team_id = ${teamId})`)
  return conditions
}

function positionOf(row: Pick<CallRow, 'at' | 'id'> | undefined): CallPosition | undefined {
  return row && { at: row.at.getTime(), id: row.id }
}
