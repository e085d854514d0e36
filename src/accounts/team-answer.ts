import Type, { type Static } from 'typebox'
import type { Team } from '../db/schema.ts'

/** Teams that an account may own. */
export const TEAMS_MAX = 20

/** A team (SPEC section 2.2). */
export const TeamAnswer = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    name: Type.String(),
    ownerId: Type.String({ format: 'uuid' }),
    createdAt: Type.String({ format: 'date-time' }),
    updatedAt: Type.String({ format: 'date-time' }),
  },
  { title: 'Team' },
)

export function toTeamAnswer(team: Team): Static<typeof TeamAnswer> {
  return {
    id: team.id,
    name: team.name,
    ownerId: team.owner_id,
    createdAt: team.created_at.toISOString(),
    updatedAt: team.updated_at.toISOString(),
  }
}
