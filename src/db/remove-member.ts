import { sql } from 'kysely'
import type { Db } from './database.ts'
import { lockTeam } from './team-ownership.ts'

export interface Removal {
  teamId: string
  memberId: string
  /** Whether the keys of the team that the member made end with the membership. */
  revokesKeys: boolean
}

/**
 * Removes a member of a team, the owner never, and the keys in the same step: a removal that fails
 * leaves both, so that it can be made again.
 *
 * @returns the account that the ended keys counted against, if there were any; undefined if there
 *   is no such member
 */
export function removeMember(
  db: Db,
  { teamId, memberId, revokesKeys }: Removal,
): Promise<{ keysEndedOf: string | undefined } | undefined> {
  return db.transaction().execute(async (transaction) => {
    const ownerId = await lockTeam(transaction, teamId)
    const { numDeletedRows } = await transaction
      .deleteFrom('team_members')
      .where('team_id', '=', teamId)
      .where('user_id', '=', memberId)
      .where('role', '<>', 'owner')
      .executeTakeFirst()
    if (numDeletedRows === 0n) return undefined
    const hasEnded = revokesKeys && (await revokeKeysOf(transaction, teamId, memberId)) > 0n
    return { keysEndedOf: hasEnded ? ownerId : undefined }
  })
}

async function revokeKeysOf(transaction: Db, teamId: string, creatorId: string): Promise<bigint> {
  const { numUpdatedRows } = await transaction
    .updateTable('api_keys')
    .set({ revoked_at: sql<Date>`now()` })
    .where('team_id', '=', teamId)
    .where('created_by', '=', creatorId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows
}
