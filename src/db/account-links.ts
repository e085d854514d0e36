import { sql } from 'kysely'
import type { Db } from './database.ts'

/** A one-time link, and the account whose password it sets. */
export interface AccountLink {
  userId: string
  provesAddress: boolean
}

export async function insertAccountLink(
  db: Db,
  { tokenHash, minutes, userId, provesAddress }: AccountLink & { tokenHash: Buffer; minutes: number },
): Promise<void> {
  await db
    .insertInto('account_links')
    .values({
      token_hash: tokenHash,
      user_id: userId,
      proves_address: provesAddress,
      expires_at: sql<Date>`now() + make_interval(mins => ${minutes})`,
    })
    .execute()
}

/** The account of a link; undefined if the link is not valid. Does not use the link. */
export async function findAccountOfLink(db: Db, tokenHash: Buffer): Promise<string | undefined> {
  const link = await db
    .selectFrom('account_links')
    .select('user_id')
    .where('token_hash', '=', tokenHash)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst()
  return link?.user_id
}

/**
 * Uses a link and deletes all other links of the account. If two requests use it at once, only one
 * gets it.
 */
export async function useAccountLink(transaction: Db, tokenHash: Buffer): Promise<AccountLink | undefined> {
  const link = await transaction
    .deleteFrom('account_links')
    .where('token_hash', '=', tokenHash)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning(['user_id as userId', 'proves_address as provesAddress'])
    .executeTakeFirst()
  if (link) await deleteAccountLinks(transaction, link.userId)
  return link
}

/**
 * Deletes the links of an account. If the account's row is locked too, lock it first, as all
 * transactions do.
 */
export async function deleteAccountLinks(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('account_links').where('user_id', '=', userId).execute()
}
