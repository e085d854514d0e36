import { sql } from 'kysely'
import type { Db } from './database.ts'
import type { Environment } from './schema.ts'

/** A notice that an account gets only once, identified by its kind and what it is about. */
export interface Notice {
  kind: 'month-80' | 'month-100' | 'key-expires-7d' | 'key-expires-1d'
  /** The month, or the key and its expiry, to which the notice belongs. */
  period: string
}

/**
 * The address for notices; undefined if the account does not want notices, or if nobody has proven
 * its address.
 */
export async function findNoticeAddress(db: Db, accountId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('users')
    .select('email')
    .where('id', '=', accountId)
    .where('takes_notices', '=', true)
    .where('email_verified_at', 'is not', null)
    .where('disabled_at', 'is', null)
    .executeTakeFirst()
  return row?.email
}

/**
 * Records that notices are being sent.
 * @returns the notices that no other process had recorded before
 */
export async function claimNotices<T extends Notice>(db: Db, accountId: string, notices: T[]): Promise<T[]> {
  const rows = await db
    .insertInto('notices')
    .values(notices.map(({ kind, period }) => ({ account_id: accountId, kind, period })))
    .onConflict((conflict) => conflict.doNothing())
    .returning(['kind', 'period'])
    .execute()
  return notices.filter((notice) => rows.some(({ kind, period }) => kind === notice.kind && period === notice.period))
}

/** Deletes the records of notices whose mail was not sent, so that another attempt can send it. */
export async function unclaimNotices(db: Db, accountId: string, notices: Notice[]): Promise<void> {
  for (const { kind, period } of notices) {
    await db
      .deleteFrom('notices')
      .where('account_id', '=', accountId)
      .where('kind', '=', kind)
      .where('period', '=', period)
      .execute()
  }
}

/**
 * The name of a key or a connection as its owner knows it, by the id under which its calls are
 * counted.
 */
export async function findCredentialName(db: Db, id: string): Promise<string | undefined> {
  const key = await db
    .selectFrom('api_keys')
    .select(['label', 'last_four as lastFour'])
    .where((where) => where.or([where('id', '=', id), where('limits_id', '=', id)]))
    .orderBy('created_at', 'desc')
    .executeTakeFirst()
  if (key) return `the key …${key.lastFour}${key.label === null ? '' : ` (${key.label})`}`
  const connection = await db
    .selectFrom('connections')
    .select('client_name as name')
    .where('id', '=', id)
    .executeTakeFirst()
  return connection && `the application ${connection.name}`
}

/** A key that is about to expire and whose owner gets a notice. */
export interface ExpiringKey extends Notice {
  accountId: string
  label: string | null
  environment: Environment
  lastFour: string
  expiresAt: Date
}

/**
 * Keys that expire soon and whose owners have not been notified. If a key was made for less time
 * than a notice is sent ahead, there is no notice. A rotated key gets no notice either, because its
 * owner chose its end.
 */
export async function findExpiringKeys(db: Db, countMax: number): Promise<ExpiringKey[]> {
  const { rows } = await sql<ExpiringKey>`
    select * from (
      select api_keys.user_id as "accountId", label, environment, last_four as "lastFour", expires_at as "expiresAt",
        case when expires_at <= now() + interval '1 day' then 'key-expires-1d' else 'key-expires-7d' end as kind,
        case when expires_at <= now() + interval '1 day' then interval '1 day' else interval '7 days' end as ahead,
        api_keys.id || ' ' || extract(epoch from expires_at)::bigint as period, api_keys.created_at as made_at
      from api_keys join users on users.id = api_keys.user_id
      where api_keys.revoked_at is null and replaced_by is null
        and expires_at > now() and expires_at <= now() + interval '7 days'
        and takes_notices and email_verified_at is not null and disabled_at is null) as due
    where made_at < "expiresAt" - ahead
      and not exists (select from notices
        where account_id = due."accountId" and notices.kind = due.kind and notices.period = due.period)
    order by "accountId", "expiresAt" limit ${countMax}`.execute(db)
  return rows
}
