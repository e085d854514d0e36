import { sql } from 'kysely'
import type { Db } from './database.ts'
import { createdMicrosOf, isAfter, type Listed, type RowRange } from './row-range.ts'
import type { Role, Team } from './schema.ts'
import { lockOwnedTeams } from './team-ownership.ts'

/** A member of a team, as members see each other. */
export interface Member {
  id: string
  email: string
  role: Role
  joinedAt: Date
  /** When the address was proven; null if it was not. */
  emailVerifiedAt: Date | null
}

/** The teams of an account, newest first. Returns one row more than the limit if there are more. */
export function listTeams(db: Db, userId: string, { limit, after }: RowRange): Promise<Listed<Team>[]> {
  return db
    .selectFrom('teams')
    .innerJoin('team_members', 'team_members.team_id', 'teams.id')
    .selectAll('teams')
    .select(createdMicrosOf('teams').as('createdMicros'))
    .where('team_members.user_id', '=', userId)
    .where(isAfter('teams', after))
    .orderBy('teams.created_at', 'desc')
    .orderBy('teams.id', 'desc')
    .limit(limit + 1)
    .execute()
}

/**
 * Makes a team with its owner as the first member; undefined if the account already owns `teamsMax`
 * teams.
 */
export function insertTeam(
  db: Db,
  team: { id: string; name: string; ownerId: string },
  teamsMax: number,
): Promise<Team | undefined> {
  return db.transaction().execute(async (transaction) => {
    if ((await lockOwnedTeams(transaction, team.ownerId)) >= teamsMax) return undefined
    const row = await transaction
      .insertInto('teams')
      .values({ id: team.id, name: team.name, owner_id: team.ownerId })
      .returningAll()
      .executeTakeFirstOrThrow()
    await transaction
      .insertInto('team_members')
      .values({ team_id: team.id, user_id: team.ownerId, role: 'owner' })
      .execute()
    return row
  })
}

/**
 * A team, and the role of an account in it; undefined if the team does not exist or the account is
 * not a member.
 */
export function findTeamOf(db: Db, teamId: string, userId: string): Promise<(Team & { role: Role }) | undefined> {
  return db
    .selectFrom('teams')
    .innerJoin('team_members', 'team_members.team_id', 'teams.id')
    .selectAll('teams')
    .select('team_members.role')
    .where('teams.id', '=', teamId)
    .where('team_members.user_id', '=', userId)
    .executeTakeFirst()
}

export function renameTeam(db: Db, teamId: string, name: string): Promise<Team> {
  return db
    .updateTable('teams')
    .set({ name, updated_at: sql<Date>`now()` })
    .where('id', '=', teamId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** The members of a team: first the owner, then the others in the order in which they joined. */
export function listMembers(db: Db, teamId: string): Promise<Member[]> {
  return selectMembers(db, teamId)
    .orderBy(sql`team_members.role <> 'owner'`)
    .orderBy('team_members.created_at')
    .orderBy('users.id')
    .execute()
}

export function findMember(db: Db, teamId: string, userId: string): Promise<Member | undefined> {
  return selectMembers(db, teamId).where('team_members.user_id', '=', userId).executeTakeFirst()
}

function selectMembers(db: Db, teamId: string) {
  return db
    .selectFrom('team_members')
    .innerJoin('users', 'users.id', 'team_members.user_id')
    .select([
      'users.id',
      'users.email',
      'team_members.role',
      'team_members.created_at as joinedAt',
      'users.email_verified_at as emailVerifiedAt',
    ])
    .where('team_members.team_id', '=', teamId)
}

/** Adds a member; false if the account is already a member. */
export async function insertMember(
  db: Db,
  { teamId, userId }: { teamId: string; userId: string },
  role: Exclude<Role, 'owner'>,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('team_members')
    .values({ team_id: teamId, user_id: userId, role })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** Changes a member's role; false if there is no such member. The owner's role never changes. */
export async function updateMemberRole(
  db: Db,
  { teamId, userId }: { teamId: string; userId: string },
  role: Exclude<Role, 'owner'>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('team_members')
    .set({ role })
    .where('team_id', '=', teamId)
    .where('user_id', '=', userId)
    .where('role', '<>', 'owner')
    .executeTakeFirst()
  return numUpdatedRows > 0n
}
