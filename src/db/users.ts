import { sql } from 'kysely'
import type { Tier } from '../catalog/upstream.ts'
import type { Db } from './database.ts'
import { asciiEmail, comparableEmail } from './email-address.ts'
import { createdMicrosOf, isAfter, type Listed, type RowRange } from './row-range.ts'
import type { User } from './schema.ts'

/** Facts that show how far an account can be trusted. */
export type Trust = Pick<User, 'created_at' | 'email_verified_at' | 'approved_at' | 'signup_network'>

export const TRUST_COLUMNS = [
  'users.created_at',
  'users.email_verified_at',
  'users.approved_at',
  'users.signup_network',
] as const

export interface NewUser {
  id: string
  email: string
  /** Null: the account has no password. */
  passwordHash: string | null
  /** Public network of the sign-up; null if the address was not public. */
  signupNetwork: string | null
  /** Whether an operator has approved the account. */
  isApproved?: boolean
}

export async function insertUser(db: Db, user: NewUser): Promise<void> {
  await db
    .insertInto('users')
    .values({
      id: user.id,
      email: asciiEmail(user.email),
      password_hash: user.passwordHash,
      // The service shows no terms, so nobody can accept them.
      terms_accepted_at: null,
      signup_network: user.signupNetwork,
      approved_at: user.isApproved ? sql<Date>`now()` : null,
    })
    .execute()
}

/** The account with this address, in any letter case and any form of its domain. */
export function findUserByEmail(db: Db, email: string): Promise<User | undefined> {
  return db.selectFrom('users').selectAll().where(sql`lower(email)`, '=', comparableEmail(email)).executeTakeFirst()
}

export function findUser(db: Db, id: string): Promise<User | undefined> {
  return db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()
}

/**
 * Replaces the hash of a password if it is still the hash that was compared; false if it has
 * changed.
 */
export async function updatePasswordHash(db: Db, user: User, passwordHash: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ password_hash: passwordHash, updated_at: sql<Date>`now()` })
    .where('id', '=', user.id)
    .where('password_hash', 'is not distinct from', user.password_hash)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Records that an account has proven its address; false if its address has changed meanwhile. */
export async function verifyEmail(db: Db, id: string, email: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ email_verified_at: sql<Date>`coalesce(email_verified_at, now())` })
    .where('id', '=', id)
    .where('email', '=', email)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * Gives an account a new password, whatever it had before.
 * @param provesAddress whether the person who set it receives the account's mail
 */
export async function replacePassword(
  db: Db,
  id: string,
  { passwordHash, provesAddress }: { passwordHash: string; provesAddress: boolean },
): Promise<User | undefined> {
  return await db
    .updateTable('users')
    .set({ password_hash: passwordHash, updated_at: sql<Date>`now()` })
    .$if(provesAddress, (update) => update.set({ email_verified_at: sql<Date>`coalesce(email_verified_at, now())` }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

/**
 * Accounts whose address contains a text or whose id equals it, newest first; all accounts if the
 * text is empty. An exact match of address or id comes first, so that it is on the first page
 * however many addresses contain the text. If `isUnapproved`, only accounts that no operator has
 * approved or disabled. Returns one row more than the limit if there are more.
 */
export function searchUsers(
  db: Db,
  { text, isUnapproved }: { text: string; isUnapproved: boolean },
  { limit, after }: RowRange,
): Promise<Listed<User>[]> {
  const given = asciiEmail(text)
  const isWhole = sql<boolean>`lower(${given}) in (lower(email), id::text)`
  return db
    .selectFrom('users')
    .selectAll()
    .select(createdMicrosOf('users').as('createdMicros'))
    .$if(isUnapproved, (query) => query.where('approved_at', 'is', null).where('disabled_at', 'is', null))
    .where(sql<boolean>`(position(lower(${given}) in lower(email)) > 0 or id::text = lower(${given}))`)
    .$if(after !== undefined, (query) => query.where(isAfter('users', after)).where(sql<boolean>`not ${isWhole}`))
    .orderBy(isWhole, 'desc')
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
}

/** The number of accounts that no operator has approved or disabled, counted up to `countMax`. */
export async function countUnapproved(db: Db, countMax: number): Promise<number> {
  const waiting = db
    .selectFrom('users')
    .select('id')
    .where('approved_at', 'is', null)
    .where('disabled_at', 'is', null)
    .limit(countMax)
  const { count } = await db
    .selectFrom(waiting.as('waiting'))
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** An account, locked until the transaction ends. */
export function lockUser(transaction: Db, id: string): Promise<User | undefined> {
  return transaction.selectFrom('users').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()
}

export function updateUser(
  db: Db,
  id: string,
  change: { tier?: Tier; disabled_at?: Date | null; approved_at?: Date | null },
): Promise<User> {
  return db
    .updateTable('users')
    .set({ ...change, updated_at: sql<Date>`now()` })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function takesNotices(db: Db, id: string): Promise<boolean> {
  const row = await db.selectFrom('users').select('takes_notices').where('id', '=', id).executeTakeFirst()
  return row?.takes_notices ?? false
}

export async function setTakesNotices(db: Db, id: string, takes: boolean): Promise<void> {
  await db.updateTable('users').set({ takes_notices: takes }).where('id', '=', id).execute()
}

/** The email addresses of accounts, by id. */
export async function findEmails(db: Db, ids: string[]): Promise<Map<string, string>> {
  const rows = await db.selectFrom('users').select(['id', 'email']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, email }) => [id, email]))
}
