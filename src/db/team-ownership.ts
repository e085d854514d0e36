import { sql } from 'kysely'
import { countLiveKeys, lockLiveKeys } from './api-keys.ts'
import type { Db } from './database.ts'
import type { Team } from './schema.ts'

/**
 * Locks the teams that an account owns, so that each change counts what the previous change left.
 */
export async function lockOwnedTeams(transaction: Db, ownerId: string): Promise<number> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${ownerId}, 2))`.execute(transaction)
  const { count } = await transaction
    .selectFrom('teams')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('owner_id', '=', ownerId)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Locks a team until the transaction ends. Meanwhile nobody can transfer or delete it, change a
 * role in it, or remove a member. Whoever makes a key for the team holds the lock too, so that no
 * key outlives the membership that allowed it.
 *
 * @returns its owner; undefined if the team does not exist
 */
export async function lockTeam(transaction: Db, teamId: string): Promise<string | undefined> {
  const team = await transaction
    .selectFrom('teams')
    .select('owner_id')
    .where('id', '=', teamId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return team?.owner_id
}

/** Deletes a team of this owner with its members and keys; false if there is no such team. */
export async function deleteTeam(db: Db, teamId: string, ownerId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('teams')
    .where('id', '=', teamId)
    .where('owner_id', '=', ownerId)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

export interface Transfer {
  teamId: string
  ownerId: string
  /** The member who becomes the owner. */
  memberId: string
  /** An account that owns this number of teams cannot receive another by transfer. */
  teamsMax: number
  /** Live keys that an account may have. */
  keysMax: number
}

type Obstacle = 'no such member' | 'too many teams' | 'too many keys'

/**
 * Makes a member the owner of a team. All others, including the former owner, become plain members.
 * The keys of the team then count against the new owner's plan. Nobody asked the new owner for
 * consent, so keys that other accounts made are revoked, and nobody else can make keys until the
 * owner has given roles. The new owner's own keys of the team count towards its live keys and must
 * stay within its limit.
 *
 * @returns the team, or the condition that failed
 */
export function transferTeam(db: Db, transfer: Transfer): Promise<Team | Obstacle> {
  const { teamId, ownerId, memberId, teamsMax, keysMax } = transfer
  return db
    .transaction()
    .execute(async (transaction) => {
      const isOwners = (await lockTeam(transaction, teamId)) === ownerId
      // Before the rows of the members, as the deletion of an account locks them.
      const ownedTeams = await lockOwnedTeams(transaction, memberId)
      // The membership is checked before the limits of the account, because a stranger's limits
      // must not be revealed.
      if (!isOwners || !(await giveRoles(transaction, transfer))) throw new TransferRefused('no such member')
      if (ownedTeams >= teamsMax) throw new TransferRefused('too many teams')
      await lockLiveKeys(transaction, memberId)
      await transaction
        .updateTable('api_keys')
        .set({ revoked_at: sql<Date>`now()` })
        .where('team_id', '=', teamId)
        .where('revoked_at', 'is', null)
        .where(sql<boolean>`created_by is distinct from ${memberId}`)
        .execute()
      await transaction.updateTable('api_keys').set({ user_id: memberId }).where('team_id', '=', teamId).execute()
      if ((await countLiveKeys(transaction, memberId)).count > keysMax) throw new TransferRefused('too many keys')
      return await transaction
        .updateTable('teams')
        .set({ owner_id: memberId, updated_at: sql<Date>`now()` })
        .where('id', '=', teamId)
        .returningAll()
        .executeTakeFirstOrThrow()
    })
    .catch((error: unknown) => {
      if (error instanceof TransferRefused) return error.obstacle
      throw error
    })
}

/** Sets the roles after a transfer; false if the new owner is not a member. */
async function giveRoles(transaction: Db, { teamId, memberId }: Transfer): Promise<boolean> {
  // The order ensures that a team never has two owners.
  await transaction
    .updateTable('team_members')
    .set({ role: 'member' })
    .where('team_id', '=', teamId)
    .where('role', '<>', 'member')
    .execute()
  const { numUpdatedRows } = await transaction
    .updateTable('team_members')
    .set({ role: 'owner' })
    .where('team_id', '=', teamId)
    .where('user_id', '=', memberId)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Undoes the transaction. */
class TransferRefused extends Error {
  readonly obstacle: Obstacle

  constructor(obstacle: Obstacle) {
    super(obstacle)
    this.obstacle = obstacle
  }
}
