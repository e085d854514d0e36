import { insertAuditRecord } from './audit-log.ts'
import type { Db } from './database.ts'
import type { User } from './schema.ts'
import { lockOwnedTeams } from './team-ownership.ts'

/** What keeps an account from being deleted. */
export type Obstacle = 'another password' | { ownedTeams: string[] }

/**
 * Deletes an account with its sessions, keys, connections, provider keys and memberships. Usage
 * stays under an id that names nobody. Keys that the account made in teams of others stay with the
 * teams.
 *
 * @param user as the password was compared with it
 * @returns undefined if the account is gone
 */
export function deleteAccount(db: Db, user: User): Promise<Obstacle | undefined> {
  return db.transaction().execute(async (transaction) => {
    // Until the account is gone nobody hands it a team, and it makes none: a team would be deleted
    // with it.
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
