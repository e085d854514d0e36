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

/** Whether a link is valid. Does not use it. */
export async function hasAccountLink(db: Db, tokenHash: Buffer): Promise<boolean> {
  const link = await db
    .selectFrom('account_links')
    .select('user_id')
    .where('token_hash', '=', tokenHash)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst()
  return link !== undefined
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
  if (link) await transaction.deleteFrom('account_links').where('user_id', '=', link.userId).execute()
  return link
}
