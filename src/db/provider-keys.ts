import { type Insertable, sql } from 'kysely'
import type { Db } from './database.ts'
import type { Database, ProviderKey, ProviderKeyStatus, ValidationFailureCode } from './schema.ts'

/** What admission needs to know of a caller's upstream key. */
export interface ProviderKeyState {
  id: string
  slug: string
  /** Name of the key's own cap. */
  bucket: string
  status: ProviderKeyStatus
}

export function listProviderKeys(db: Db, userId: string): Promise<ProviderKey[]> {
  return db.selectFrom('provider_keys').selectAll().where('user_id', '=', userId).orderBy('slug').execute()
}

export function listProviderKeyStates(db: Db, userId: string): Promise<ProviderKeyState[]> {
  return db
    .selectFrom('provider_keys')
    .select(['id', 'slug', 'cap_scope as bucket', 'status'])
    .where('user_id', '=', userId)
    .execute()
}

export function findProviderKeyOf(db: Db, userId: string, slug: string): Promise<ProviderKey | undefined> {
  return db
    .selectFrom('provider_keys')
    .selectAll()
    .where('user_id', '=', userId)
    .where('slug', '=', slug)
    .executeTakeFirst()
}

export function findProviderKey(db: Db, id: string): Promise<ProviderKey | undefined> {
  return db.selectFrom('provider_keys').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Saves an account's key for an upstream in place of the one before; under a new id, so that nothing mixes them up. */
export function saveProviderKey(
  db: Db,
  key: Pick<
    Insertable<Database['provider_keys']>,
    'id' | 'user_id' | 'slug' | 'secret_id' | 'sealed' | 'cap_scope' | 'masked'
  >,
): Promise<ProviderKey> {
  const status = 'unvalidated' as const
  const fresh = { ...key, ...NO_FAILURE, status, saved_at: sql<Date>`now()`, last_validated_at: null }
  return db
    .insertInto('provider_keys')
    .values(fresh)
    .onConflict((conflict) => conflict.columns(['user_id', 'slug']).doUpdateSet(fresh))
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function deleteProviderKey(db: Db, userId: string, slug: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('provider_keys')
    .where('user_id', '=', userId)
    .where('slug', '=', slug)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** Notes what the upstream said of a key. A key that was replaced meanwhile has another id and is left alone. */
export async function setProviderKeyStatus(db: Db, id: string, status: 'valid' | 'invalid'): Promise<void> {
  await db
    .updateTable('provider_keys')
    .set({ ...NO_FAILURE, status, last_validated_at: sql<Date>`now()` })
    .where('id', '=', id)
    .execute()
}

const NO_FAILURE = { failure_code: null, failed_at: null, next_validation_at: null }

export interface ValidationFailure {
  code: ValidationFailureCode
  /** When this validation runs again; null: it does not, and the time of another one stays. */
  nextAt: Date | null
  /** The time that this validation noted before. */
  lastNextAt?: Date | null
}

/** Notes that a validation showed nothing of a key, which stays as it is unless nothing can show it. @returns undefined where it was replaced or deleted */
export function setValidationFailure(
  db: Db,
  id: string,
  { code, nextAt, lastNextAt = null }: ValidationFailure,
): Promise<ProviderKey | undefined> {
  const nextOfAnother = sql<Date | null>`case
    when next_validation_at > now() and next_validation_at is distinct from ${lastNextAt}::timestamptz
    then next_validation_at
  end`
  return db
    .updateTable('provider_keys')
    .set({
      ...(code === 'KEY_NOT_CHECKABLE' ? { status: 'unvalidated' as const } : {}),
      ...{ failure_code: code, failed_at: sql<Date>`now()`, next_validation_at: nextAt ?? nextOfAnother },
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

/** Replaces the sealed form of a key whose encryption key was rotated. */
export async function resealProviderKey(
  db: Db,
  id: string,
  { secretId, bytes }: { secretId: string; bytes: Buffer },
): Promise<void> {
  await db.updateTable('provider_keys').set({ secret_id: secretId, sealed: bytes }).where('id', '=', id).execute()
}
