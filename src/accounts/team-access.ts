import type { Db } from '../db/database.ts'
import type { Role, Team } from '../db/schema.ts'
import { lockTeam } from '../db/team-ownership.ts'
import { findTeamOf } from '../db/teams.ts'
import { GatewayError } from '../errors.ts'
import { isUuid } from './uuid.ts'

export const ALL_ROLES: Role[] = ['owner', 'admin', 'member']
export const MANAGERS: Role[] = ['owner', 'admin']

/**
 * The team, for a user who has one of these roles in it. Roles are read for each request, so a
 * change counts from the next request on.
 *
 * @throws GatewayError TEAM_NOT_FOUND for a user who is not a member, because only members may know
 *   that the team exists; FORBIDDEN for a member with another role
 */
export async function teamFor(
  db: Db,
  { teamId, userId }: { teamId: string; userId: string },
  roles: Role[],
): Promise<Team & { role: Role }> {
  const team = isUuid(teamId) ? await findTeamOf(db, teamId, userId) : undefined
  if (!team) throw new GatewayError('TEAM_NOT_FOUND')
  if (!roles.includes(team.role)) throw new GatewayError('FORBIDDEN')
  return team
}

/**
 * As `teamFor`, with a lock for a user who is about to change the team. Until the transaction ends,
 * nobody can delete or transfer the team, change a role in it, or remove a member.
 */
export async function lockTeamFor(
  transaction: Db,
  { teamId, userId }: { teamId: string; userId: string },
  roles: Role[],
): Promise<Team & { role: Role }> {
  if (isUuid(teamId)) await lockTeam(transaction, teamId)
  return await teamFor(transaction, { teamId, userId }, roles)
}
