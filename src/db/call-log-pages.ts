import { type RawBuilder, sql } from 'kysely'
import type { Db } from './database.ts'
import type { CallRow, CallVia, Environment } from './schema.ts'

/** A row with the names of the key, application and account that made the call. */
export interface ListedCallRow extends CallRow {
  /** Label of the key; null for a session, and for a key that was deleted. */
  key_label: string | null
  key_last_four: string | null
  /** Name of the application, if its connection made the call. */
  application: string | null
  /** Email address of the account; null if the account was deleted. */
  email: string | null
}

/** Which calls to list. An absent member does not restrict the list. */
export interface CallFilter {
  accountId?: string | undefined
  /** Only calls with keys of this team. */
  teamId?: string | undefined
  from?: Date | undefined
  /** The end of the time range, exclusive. */
  to?: Date | undefined
  slug?: string | undefined
  endpoint?: string | undefined
  /** The first and the last status, both inclusive. */
  status?: [first: number, last: number] | undefined
  code?: string | undefined
  /** Only calls that failed. */
  isFailure?: boolean
  /** Id of a key or of a connection, or `session`. */
  key?: string | undefined
  mode?: Environment | undefined
  via?: CallVia | undefined
  tool?: string | undefined
}

/** The position of a call in the list. Later calls come first. */
export interface CallPosition {
  /** Milliseconds since the epoch. */
  at: number
  id: string
}

export interface CallPage {
  calls: ListedCallRow[]
  /** The start of the next page; undefined if there are no further calls. */
  next: CallPosition | undefined
}

/**
 * Most rows that a page reads. Without this limit, a filter that matches few of a million calls
 * would read all of them. So a page may have fewer calls than its limit, or none, although more
 * pages follow.
 */
const READ_MAX = 20_000

/** Most calls of one request. A batch has at most fifty. */
const REQUEST_CALLS_MAX = 100

/**
 * The matching calls, newest first. Each page takes about the same time, whatever the filter and
 * the number of calls.
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
  // Without further conditions every row that was read belongs to the page.
  if (conditions.length === 1) return { calls, next: undefined }
  const { rows: last } = await sql<Pick<CallRow, 'at' | 'id'>>`
    select at, id from call_log where ${bounds} order by at desc, id desc
    offset ${sql.lit(READ_MAX - 1)} limit 1`.execute(db)
  return { calls, next: positionOf(last[0]) }
}

/**
 * Whose calls may be shown: the calls of an account and of the keys of teams that it manages, or
 * all calls.
 */
export type CallViewer = { accountId: string } | 'operator'

/**
 * The call with this id, or the calls of the request with this id, in the order in which they
 * ended.
 */
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

/** The rows of a page, joined with names of keys, applications and accounts. */
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
 * Conditions that an index can use. The time of the position is repeated as a condition of its own,
 * because Postgres selects partitions by it.
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
