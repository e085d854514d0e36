import type { Db } from './database.ts'
import type { User } from './schema.ts'

/** The name by which an OIDC provider knows a person, independent of the email address. */
export interface IdentityName {
  issuer: string
  subject: string
}

/** The account to which a person's sign-in leads. */
export function findUserByIdentity(db: Db, { issuer, subject }: IdentityName): Promise<User | undefined> {
  return db
    .selectFrom('identities')
    .innerJoin('users', 'users.id', 'identities.user_id')
    .selectAll('users')
    .where('identities.issuer', '=', issuer)
    .where('identities.subject', '=', subject)
    .executeTakeFirst()
}

/** Whether an account is already linked to somebody at a provider. */
export async function hasIdentity(db: Db, userId: string, issuer: string): Promise<boolean> {
  const row = await db
    .selectFrom('identities')
    .select('subject')
    .where('user_id', '=', userId)
    .where('issuer', '=', issuer)
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Links a person to an account. If somebody else at the provider was linked to it, that link is
 * replaced.
 */
export async function setIdentity(transaction: Db, userId: string, { issuer, subject }: IdentityName): Promise<void> {
  await transaction.deleteFrom('identities').where('user_id', '=', userId).where('issuer', '=', issuer).execute()
  await transaction.insertInto('identities').values({ issuer, subject, user_id: userId }).execute()
}
