import { sql } from 'kysely'
import type { Tier } from '../catalog/upstream.ts'
import type { Db } from './database.ts'
import { createdMicrosOf, isAfter, type Listed, type RowRange } from './row-range.ts'
import type { ApiKey, Environment, NewApiKey } from './schema.ts'
import { TRUST_COLUMNS, type Trust } from './users.ts'

/** The restrictions of a key or a connection, and the id under which its calls are counted. */
export interface AllowedToCredential {
  limitsId: string
  apis: string[] | null
  addresses: string[] | null
  perMinute: number | null
  perMonth: number | null
  inFlight: number | null
}

/** The columns with these restrictions, which keys and connections have. */
export type AllowedColumns = Pick<ApiKey, 'apis' | 'addresses' | 'per_minute' | 'per_month' | 'in_flight' | 'may_write'>

/** What admission reads about a key. */
export interface KeyOwner extends Trust, AllowedToCredential {
  keyId: string
  userId: string
  teamId: string | null
  tier: Tier
  environment: Environment
  expiresAt: Date | null
  mayWrite: boolean
  /** When the account was disabled. It may be enabled again. */
  disabledAt: Date | null
}

/** The owner of a key, unless the key is revoked or expired. */
export function findKeyOwner(db: Db, keyHash: Buffer): Promise<KeyOwner | undefined> {
  return db
    .selectFrom('api_keys')
    .innerJoin('users', 'users.id', 'api_keys.user_id')
    .select([
      'api_keys.id as keyId',
      'users.id as userId',
      'api_keys.team_id as teamId',
      'users.tier as tier',
      'api_keys.environment as environment',
      'api_keys.expires_at as expiresAt',
      'api_keys.may_write as mayWrite',
      'users.disabled_at as disabledAt',
      'api_keys.apis as apis',
      'api_keys.addresses as addresses',
      'api_keys.per_minute as perMinute',
      'api_keys.per_month as perMonth',
      'api_keys.in_flight as inFlight',
      sql<string>`coalesce(api_keys.limits_id, api_keys.id)`.as('limitsId'),
      ...TRUST_COLUMNS,
    ])
    .where('api_keys.key_hash', '=', keyHash)
    .where('api_keys.revoked_at', 'is', null)
    .where(isUnexpired)
    .executeTakeFirst()
}

export const isUnexpired = sql<boolean>`(api_keys.expires_at is null or api_keys.expires_at > now())`

/**
 * The keys that an account may revoke and that are not revoked, newest first: its own keys, and the
 * keys of teams that it owns or administers. Returns one row more than the limit if there are more.
 */
export function listApiKeys(db: Db, userId: string, { limit, after }: RowRange): Promise<Listed<ApiKey>[]> {
  return db
    .selectFrom('api_keys')
    .leftJoin('team_members', (join) =>
      join.onRef('team_members.team_id', '=', 'api_keys.team_id').on('team_members.user_id', '=', userId),
    )
    .selectAll('api_keys')
    .select(createdMicrosOf('api_keys').as('createdMicros'))
    .where('api_keys.revoked_at', 'is', null)
    .where((where) =>
      where.or([
        where.and([where('api_keys.team_id', 'is', null), where('api_keys.user_id', '=', userId)]),
        where('team_members.role', 'in', ['owner', 'admin']),
      ]),
    )
    .where(isAfter('api_keys', after))
    .orderBy('api_keys.created_at', 'desc')
    .orderBy('api_keys.id', 'desc')
    .limit(limit + 1)
    .execute()
}

/** The live keys that count against an account, including the keys of its teams, newest first. */
export function listAccountKeys(db: Db, userId: string): Promise<ApiKey[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where(isUnexpired)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute()
}

/** A team's own keys that are not revoked, newest first. */
export function listTeamKeys(db: Db, teamId: string): Promise<ApiKey[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where('team_id', '=', teamId)
    .where('revoked_at', 'is', null)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute()
}

/** A key of any owner, even if it is revoked. */
export function findApiKey(db: Db, keyId: string): Promise<ApiKey | undefined> {
  return db.selectFrom('api_keys').selectAll().where('id', '=', keyId).executeTakeFirst()
}

export interface KeyLimits {
  /** Live keys that the account may have, including the keys of its teams. */
  keysMax: number
  /** Live keys that other accounts may make in its teams. */
  othersKeysMax: number
}

/**
 * Inserts a key unless the account already has its full number of live keys. The count is exact
 * even under concurrent requests. `othersKeysMax` ensures that admins of its teams cannot use up
 * the account's whole number.
 */
export async function insertApiKey(
  transaction: Db,
  key: NewApiKey,
  { keysMax, othersKeysMax }: KeyLimits,
): Promise<'inserted' | 'full' | 'full for others'> {
  await lockLiveKeys(transaction, key.user_id)
  const { count, others } = await countLiveKeys(transaction, key.user_id)
  if (count >= keysMax) return 'full'
  if (key.created_by !== key.user_id && others >= othersKeysMax) return 'full for others'
  await transaction.insertInto('api_keys').values(key).execute()
  return 'inserted'
}

/**
 * Serialises all changes that add live keys to an account, so that each counts the keys that the
 * previous change left.
 */
export async function lockLiveKeys(transaction: Db, userId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${userId}, 1))`.execute(transaction)
}

/**
 * Counts live keys that no other key has replaced. `others` counts only the keys of teams that
 * other accounts made, including accounts that were deleted since.
 */
export async function countLiveKeys(db: Db, userId: string): Promise<{ count: number; others: number }> {
  const { count, others } = await db
    .selectFrom('api_keys')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .select(
      sql<string>`count(*) filter (where team_id is not null and created_by is distinct from user_id)`.as('others'),
    )
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where('replaced_by', 'is', null)
    .where(isUnexpired)
    .executeTakeFirstOrThrow()
  return { count: Number(count), others: Number(others) }
}

/**
 * Counts the keys that another key has replaced and that still work. The count is exact until the
 * transaction ends.
 */
export async function countOverlaps(transaction: Db, userId: string): Promise<number> {
  await lockLiveKeys(transaction, userId)
  const { count } = await transaction
    .selectFrom('api_keys')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where('replaced_by', 'is not', null)
    .where(isUnexpired)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Revokes a key.
 * @returns the account against which it counted; undefined if it was revoked already
 */
export async function revokeApiKey(db: Db, keyId: string): Promise<string | undefined> {
  const key = await db
    .updateTable('api_keys')
    .set({ revoked_at: sql<Date>`now()` })
    .where('id', '=', keyId)
    .where('revoked_at', 'is', null)
    .returning('user_id')
    .executeTakeFirst()
  return key?.user_id
}

/**
 * Records when keys were last used, to the minute. A busy key is therefore written once a minute,
 * not for each call.
 */
export async function touchApiKeys(db: Db, keyIds: string[]): Promise<void> {
  if (keyIds.length === 0) return
  await db
    .updateTable('api_keys')
    .set({ last_used_at: sql<Date>`now()` })
    .where('id', 'in', keyIds)
    .where(sql<boolean>`(last_used_at is null or last_used_at < now() - interval '1 minute')`)
    .execute()
}
