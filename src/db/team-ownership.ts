import { sql } from 'kysely'
import { countLiveKeys, lockLiveKeys } from './api-keys.ts'
import type { Db } from './database.ts'
import type { Team } from './schema.ts'

/** Locks the teams that an account owns, so that each change counts what the one before it left. */
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
 * Locks a team until the transaction ends: meanwhile it is not handed over or deleted, and no member of it is removed
 * together with keys. Whoever makes a key of it holds the lock too, so that no key outlives the reason it may be there.
 *
 * @returns its owner; undefined when there is no such team
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

/** Deletes a team of this owner with its members and keys; false when there is no such team. */
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
  /** A member of the team. */
  memberId: string
  /** Teams that an account may own. */
  teamsMax: number
  /** Live keys that an account may have. */
  keysMax: number
}

type Obstacle = 'no such member' | 'too many teams' | 'too many keys'

/**
 * Makes a member the owner of a team, and its owner an admin. The team's keys count against the owner's plan: those
 * that the new owner has not made end, so that nobody can hand others the cost of keys that they hold. The others add to
 * the new owner's live keys, which stay within their number.
 *
 * @returns the team, or which condition failed
 */
export function transferTeam(db: Db, transfer: Transfer): Promise<Team | Obstacle> {
  const { teamId, ownerId, memberId, teamsMax, keysMax } = transfer
  return db
    .transaction()
    .execute(async (transaction) => {
      if ((await lockOwnedTeams(transaction, memberId)) >= teamsMax) return 'too many teams'
      await lockTeam(transaction, teamId)
      await lockLiveKeys(transaction, memberId)
      const setRole = (userId: string, from: 'owner' | 'other', role: 'owner' | 'admin') =>
        transaction
          .updateTable('team_members')
          .set({ role })
          .where('team_id', '=', teamId)
          .where('user_id', '=', userId)
          .where('role', from === 'owner' ? '=' : '<>', 'owner')
          .executeTakeFirst()
      // In this order: a team never has two owners.
      const left = await setRole(ownerId, 'owner', 'admin')
      const made = await setRole(memberId, 'other', 'owner')
      if (left.numUpdatedRows !== 1n || made.numUpdatedRows !== 1n) throw new TransferRefused('no such member')
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

/** Undoes the transaction. */
class TransferRefused extends Error {
  readonly obstacle: Obstacle

  constructor(obstacle: Obstacle) {
    super(obstacle)
    this.obstacle = obstacle
  }
}
