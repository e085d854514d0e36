import { sql } from 'kysely'
import type { Db } from './database.ts'
import { lockTeam } from './team-ownership.ts'

export interface Removal {
  teamId: string
  memberId: string
  /** Whether the keys that the member made for the team are revoked too. */
  revokesKeys: boolean
}

/**
 * Removes a member of a team. If `revokesKeys`, the same transaction revokes the member's keys, so
 * that a failed removal leaves both and can be repeated. The owner cannot be removed.
 *
 * @returns the account against which the revoked keys counted, if any were revoked; undefined if
 *   there is no such member
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
