import { type Insertable, sql } from 'kysely'
import type { Db } from './database.ts'
import type { Database, ProviderKey, ProviderKeyStatus, ValidationFailureCode } from './schema.ts'

/** What admission reads about a caller's provider key. */
export interface ProviderKeyState {
  id: string
  slug: string
  /** Name of the key's own cap bucket. */
  bucket: string
  status: ProviderKeyStatus
}

/** The owner of a provider key: an account, or a team, whose API keys use it. */
export type ProviderKeyOwner = { userId: string } | { teamId: string }

/** The column that names the owner, and the owner's id. */
function ownership(owner: ProviderKeyOwner): ['user_id' | 'team_id', string] {
  return 'teamId' in owner ? ['team_id', owner.teamId] : ['user_id', owner.userId]
}

export function listProviderKeys(db: Db, owner: ProviderKeyOwner): Promise<ProviderKey[]> {
  const [column, id] = ownership(owner)
  return db.selectFrom('provider_keys').selectAll().where(column, '=', id).orderBy('slug').execute()
}

export function listProviderKeyStates(db: Db, owner: ProviderKeyOwner): Promise<ProviderKeyState[]> {
  const [column, id] = ownership(owner)
  return db
    .selectFrom('provider_keys')
    .select(['id', 'slug', 'cap_scope as bucket', 'status'])
    .where(column, '=', id)
    .execute()
}

export function findProviderKeyOf(db: Db, owner: ProviderKeyOwner, slug: string): Promise<ProviderKey | undefined> {
  const [column, id] = ownership(owner)
  return db.selectFrom('provider_keys').selectAll().where(column, '=', id).where('slug', '=', slug).executeTakeFirst()
}

/**
 * A provider key, and the account whose calls use it: the owner itself, or the owner of its team.
 */
export type OwnedProviderKey = ProviderKey & { account_id: string }

export function findProviderKey(db: Db, id: string): Promise<OwnedProviderKey | undefined> {
  return db
    .selectFrom('provider_keys')
    .leftJoin('teams', 'teams.id', 'provider_keys.team_id')
    .selectAll('provider_keys')
    .select(sql<string>`coalesce(provider_keys.user_id, teams.owner_id)`.as('account_id'))
    .where('provider_keys.id', '=', id)
    .executeTakeFirst()
}

/**
 * Saves an owner's key for an upstream and replaces the previous key. The new key gets a new id, so
 * that the two cannot be confused.
 */
export function saveProviderKey(
  db: Db,
  owner: ProviderKeyOwner,
  key: Pick<Insertable<Database['provider_keys']>, 'id' | 'slug' | 'secret_id' | 'sealed' | 'cap_scope' | 'masked'>,
): Promise<ProviderKey> {
  const status = 'unvalidated' as const
  const [column, ownerId] = ownership(owner)
  const fresh = {
    ...key,
    ...NO_FAILURE,
    [column]: ownerId,
    status,
    saved_at: sql<Date>`now()`,
    last_validated_at: null,
  }
  return db
    .insertInto('provider_keys')
    .values(fresh)
    .onConflict((conflict) => conflict.columns([column, 'slug']).doUpdateSet(fresh))
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function deleteProviderKey(db: Db, owner: ProviderKeyOwner, slug: string): Promise<boolean> {
  const [column, id] = ownership(owner)
  const { numDeletedRows } = await db
    .deleteFrom('provider_keys')
    .where(column, '=', id)
    .where('slug', '=', slug)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/**
 * Records what the upstream said about a key. If the key was replaced meanwhile, its id is gone and
 * nothing is written.
 */
export async function setProviderKeyStatus(db: Db, id: string, status: 'valid' | 'invalid'): Promise<void> {
  await db
    .updateTable('provider_keys')
    .set({ ...NO_FAILURE, status, last_validated_at: sql<Date>`now()` })
    .where('id', '=', id)
    .execute()
}

/** Most validations of one look. */
const OVERDUE_MAX = 100

/** Keys whose next validation is more than two minutes late, the latest validation last. */
export function listOverdueValidations(db: Db): Promise<Pick<ProviderKey, 'id' | 'slug' | 'next_validation_at'>[]> {
  return db
    .selectFrom('provider_keys')
    .select(['id', 'slug', 'next_validation_at'])
    .where('next_validation_at', '<', sql<Date>`now() - interval '2 minutes'`)
    .orderBy('next_validation_at')
    .limit(OVERDUE_MAX)
    .execute()
}

/** Deletes the time of a key's next validation, unless a validation has changed it meanwhile. */
export async function forgetNextValidation(
  db: Db,
  { id, next_validation_at }: Pick<ProviderKey, 'id' | 'next_validation_at'>,
): Promise<void> {
  await db
    .updateTable('provider_keys')
    .set({ next_validation_at: null })
    .where('id', '=', id)
    .where('next_validation_at', '=', next_validation_at)
    .execute()
}

const NO_FAILURE = { failure_code: null, failed_at: null, next_validation_at: null }

export interface ValidationFailure {
  code: ValidationFailureCode
  /**
   * When the validation runs again. Null: it does not run again by itself, and the time that
   * another validation recorded stays.
   */
  nextAt: Date | null
  /** The time that this validation recorded before. */
  lastNextAt?: Date | null
}

/**
 * Records that a validation failed to decide about a key. The status of the key changes only if no
 * validation can ever decide.
 *
 * @returns undefined if the key was replaced or deleted
 */
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
