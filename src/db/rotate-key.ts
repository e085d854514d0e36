import { sql } from 'kysely'
import { type AllowedColumns, countOverlaps, isUnexpired } from './api-keys.ts'
import type { Db } from './database.ts'
import type { ApiKey, NewApiKey } from './schema.ts'

export interface Rotation {
  /** The new key, without the members that it takes over from the old key. */
  made: Pick<NewApiKey, 'id' | 'key_hash' | 'last_four' | 'created_by'>
  /** When the new key expires. Undefined: its lifetime from now is the lifetime of the old key. */
  expiresAt: Date | null | undefined
  /** How long the old key continues to work, seconds. */
  overlapSeconds: number
  /** Most keys of an account that are in their overlap. */
  overlapsMax: number
}

export type RotationOutcome =
  | { kind: 'rotated'; previous: ApiKey }
  | { kind: 'ended' | 'rotated before' | 'too many overlaps' }

/**
 * Replaces a key by a new key with the same label, environment, team and limits. The calls of both
 * are counted together. If two rotations run at once, one wins. If the overlap is 0, the old key
 * ends at once.
 */
export async function rotateKey(transaction: Db, keyId: string, rotation: Rotation): Promise<RotationOutcome> {
  const { made, overlapSeconds, overlapsMax } = rotation
  const old = await lockApiKey(transaction, keyId)
  if (!old) return { kind: 'ended' }
  if (old.replaced_by !== null) return { kind: 'rotated before' }
  if ((await countOverlaps(transaction, old.user_id)) >= overlapsMax) return { kind: 'too many overlaps' }
  const { created_at, expires_at } = old
  const sameLifetime = expires_at && sql<Date>`now() + (${expires_at}::timestamptz - ${created_at}::timestamptz)`
  await transaction
    .insertInto('api_keys')
    .values({
      ...{ user_id: old.user_id, team_id: old.team_id, environment: old.environment, label: old.label },
      ...{ apis: old.apis, per_minute: old.per_minute, per_month: old.per_month, in_flight: old.in_flight },
      ...{ addresses: old.addresses, may_write: old.may_write },
      limits_id: old.limits_id ?? old.id,
      expires_at: rotation.expiresAt === undefined ? sameLifetime : rotation.expiresAt,
      ...made,
    })
    .execute()
  const end = sql<Date>`now() + make_interval(secs => ${overlapSeconds})`
  const previous = await transaction
    .updateTable('api_keys')
    .set({ replaced_by: made.id, expires_at: sql<Date>`least(expires_at, ${end})` })
    .$if(overlapSeconds === 0, (update) => update.set({ revoked_at: sql<Date>`now()` }))
    .where('id', '=', keyId)
    .returningAll()
    .executeTakeFirstOrThrow()
  return { kind: 'rotated', previous }
}

/**
 * Whether a key replaced an earlier key, directly or through keys between them. The times of their
 * creation do not tell, because the clock of Postgres may have been set back.
 */
export async function hasReplaced(db: Db, keyId: string, earlierId: string): Promise<boolean> {
  const { rows } = await sql<{ hasReplaced: boolean }>`
    with recursive successors as (
      select replaced_by as id from api_keys where id = ${earlierId}
      union select replaced_by from api_keys join successors using (id))
    select exists (select from successors where id = ${keyId}) as "hasReplaced"`.execute(db)
  return rows[0]?.hasReplaced === true
}

/** A key that is neither revoked nor expired, locked until the transaction ends. */
export function lockApiKey(transaction: Db, keyId: string): Promise<ApiKey | undefined> {
  return transaction
    .selectFrom('api_keys')
    .selectAll()
    .where('id', '=', keyId)
    .where('revoked_at', 'is', null)
    .where(isUnexpired)
    .forUpdate()
    .executeTakeFirst()
}

/** @param allowed restrictions for the key and for all keys that are counted together with it */
export async function updateApiKey(
  transaction: Db,
  key: ApiKey,
  { own, allowed }: { own: Partial<Pick<ApiKey, 'label' | 'expires_at'>>; allowed: Partial<AllowedColumns> },
): Promise<ApiKey> {
  const limitsId = key.limits_id ?? key.id
  if (Object.keys(allowed).length > 0) {
    await transaction
      .updateTable('api_keys')
      .set(allowed)
      .where((where) => where.or([where('id', '=', limitsId), where('limits_id', '=', limitsId)]))
      .execute()
  }
  if (Object.keys(own).length > 0) {
    await transaction.updateTable('api_keys').set(own).where('id', '=', key.id).execute()
  }
  return await transaction.selectFrom('api_keys').selectAll().where('id', '=', key.id).executeTakeFirstOrThrow()
}
