import { sql } from 'kysely'
import type { Db } from './database.ts'

export interface Removal {
  teamId: string
  memberId: string
  /** Whether the keys that the member made for the team are revoked too. */
  revokesKeys: boolean
}

/** Removes a member of a team that is locked (`lockTeam`). The owner cannot be removed. */
export async function removeMember(transaction: Db, { teamId, memberId, revokesKeys }: Removal): Promise<void> {
  await transaction
    .deleteFrom('team_members')
    .where('team_id', '=', teamId)
    .where('user_id', '=', memberId)
    .where('role', '<>', 'owner')
    .execute()
  if (revokesKeys) await revokeKeysOf(transaction, teamId, memberId)
}

async function revokeKeysOf(transaction: Db, teamId: string, creatorId: string): Promise<void> {
  await transaction
    .updateTable('api_keys')
    .set({ revoked_at: sql<Date>`now()` })
    .where('team_id', '=', teamId)
    .where('created_by', '=', creatorId)
    .where('revoked_at', 'is', null)
    .execute()
}
