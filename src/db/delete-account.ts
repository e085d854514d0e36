import { insertAuditRecord } from './audit-log.ts'
import type { Db } from './database.ts'
import type { User } from './schema.ts'
import { lockOwnedTeams } from './team-ownership.ts'

/** Why an account cannot be deleted. */
export type Obstacle = 'another password' | { ownedTeams: string[] }

/**
 * Deletes an account with its sessions, keys, connections, provider keys and memberships. Its usage
 * remains under an id that no longer leads to a person. Keys that the account made in other
 * accounts' teams remain with the teams.
 *
 * @param user as read when its password was compared
 * @returns undefined after the account was deleted
 */
export function deleteAccount(db: Db, user: User): Promise<Obstacle | undefined> {
  return db.transaction().execute(async (transaction) => {
    // The lock ensures that the account neither gets nor makes a team until it is deleted. Such a
    // team would be deleted with it.
    if ((await lockOwnedTeams(transaction, user.id)) > 0) {
      const teams = await transaction.selectFrom('teams').select('name').where('owner_id', '=', user.id).execute()
      return { ownedTeams: teams.map(({ name }) => name) }
    }
    const { numDeletedRows } = await transaction
      .deleteFrom('users')
      .where('id', '=', user.id)
      .where('password_hash', 'is not distinct from', user.password_hash)
      .executeTakeFirst()
    if (numDeletedRows === 0n) return 'another password'
    await insertAuditRecord(transaction, { actor: 'the account itself', action: 'user.delete', subject: user.id })
    return undefined
  })
}
