import { hash, randomBytes } from 'node:crypto'
import { type AccountLink, findAccountOfLink, insertAccountLink, useAccountLink } from '../db/account-links.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { User } from '../db/schema.ts'
import { revokeSessions } from '../db/sessions.ts'
import { lockUser, replacePassword } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { hashPassword } from './password.ts'

/** How long a link is valid, minutes. */
export const RESET_LINK_MINUTES = 30

const TOKEN_BYTES = 32

/**
 * Makes a one-time link with which an account gets a new password. Only a hash of its token is
 * stored.
 */
export async function createResetLink(db: Db, link: AccountLink, baseUrl: string): Promise<string> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  await insertAccountLink(db, { ...link, tokenHash: hashOf(token), minutes: RESET_LINK_MINUTES })
  return `${baseUrl}/reset?token=${token}`
}

const hashOf = (token: string): Buffer => hash('sha256', token, 'buffer')

const notGood = (): GatewayError =>
  new GatewayError('INVALID_TOKEN', {
    message: `The link is not valid, because it was used already, is more than ${RESET_LINK_MINUTES} minutes old, is not complete, or the password has changed since.`,
    hint: 'Ask for another link and open the newest one',
  })

/**
 * Uses a link: sets the account's new password and ends all its sessions. Its keys and applications
 * stay valid.
 *
 * @param client names whose slots the password hash takes, see `hashPassword`
 * @throws GatewayError INVALID_TOKEN for a link that was used, has expired or never existed
 */
export async function resetByLink(
  db: Db,
  { token, password, client }: { token: string; password: string; client: string },
  accounts: Set<string>,
): Promise<User> {
  const tokenHash = hashOf(token)
  // A hash costs 50 ms of a core, so made-up tokens are refused before the password is hashed.
  const userId = await findAccountOfLink(db, tokenHash)
  if (userId === undefined) throw notGood()
  const passwordHash = await hashPassword(password, client)
  return await db.transaction().execute(async (transaction) => {
    await lockUser(transaction, userId)
    const link = await useAccountLink(transaction, tokenHash)
    if (!link) throw notGood()
    accounts.add(link.userId)
    const user = await replacePassword(transaction, link.userId, { ...link, passwordHash })
    if (!user) throw notGood()
    await revokeSessions(transaction, link.userId)
    await insertAuditRecord(transaction, { actor: 'reset link', action: 'user.password', subject: link.userId })
    return user
  })
}
