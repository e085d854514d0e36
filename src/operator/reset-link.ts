import Type from 'typebox'
import { createResetLink, RESET_LINK_MINUTES } from '../accounts/reset-link.ts'
import { insertAuditRecord } from '../db/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { User } from '../db/schema.ts'
import { lockUser } from '../db/users.ts'
import { noSuchUser, UserAnswer } from './change-user.ts'

export const ResetLink = Type.Object({
  user: UserAnswer,
  link: Type.String({
    description: `Address at which the account sets a new password, once, within ${RESET_LINK_MINUTES} minutes. Shown only once`,
  }),
})

/**
 * Makes a link with which an account sets a new password that no operator sees. Using the link does
 * not prove the account's email address, because the operator may hand it over in any way.
 *
 * @throws GatewayError USER_NOT_FOUND
 */
export function makeResetLink(
  db: Db,
  id: string,
  { actor, baseUrl }: { actor: string; baseUrl: string },
): Promise<{ user: User; link: string }> {
  return db.transaction().execute(async (transaction) => {
    const user = await lockUser(transaction, id)
    if (!user) throw noSuchUser()
    await insertAuditRecord(transaction, { actor, action: 'user.reset-link', subject: id })
    return { user, link: await createResetLink(transaction, { userId: id, provesAddress: false }, baseUrl) }
  })
}
