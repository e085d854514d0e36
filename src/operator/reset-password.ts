import { randomBytes } from 'node:crypto'
import Type from 'typebox'
import { hashPassword } from '../accounts/password.ts'
import { deleteAccountLinks } from '../db/account-links.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { User } from '../db/schema.ts'
import { revokeSessions } from '../db/sessions.ts'
import { lockUser, updatePasswordHash } from '../db/users.ts'
import { noSuchUser, UserAnswer } from './change-user.ts'

export const ResetPassword = Type.Object({
  user: UserAnswer,
  password: Type.String({ description: 'Shown only once: nobody can read it again' }),
})

/** Bytes of the new password: 144 bits, written as 24 characters that never need quoting. */
const PASSWORD_BYTES = 18

/**
 * Gives an account a new random password and ends its sessions and links, because a stolen session
 * or link may be the reason. Its keys and applications stay valid.
 *
 * @throws GatewayError USER_NOT_FOUND
 */
export async function resetPassword(
  db: Db,
  id: string,
  { actor }: { actor: string },
): Promise<{ user: User; password: string }> {
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  const passwordHash = await hashPassword(password)
  const user = await db.transaction().execute(async (transaction) => {
    const locked = await lockUser(transaction, id)
    if (!locked) throw noSuchUser()
    await updatePasswordHash(transaction, locked, passwordHash)
    await revokeSessions(transaction, id)
    await deleteAccountLinks(transaction, id)
    const change = { before: { password: 'their own' }, after: { password: 'a new one' } }
    await insertAuditRecord(transaction, { actor, action: 'user.password', subject: id, ...change })
    return locked
  })
  return { user, password }
}
