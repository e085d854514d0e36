import Type, { type Static } from 'typebox'
import type { Team } from '../db/schema.ts'

/** Teams that an account may own. */
export const TEAMS_MAX = 20

/**
 * An account that owns so many teams cannot receive another team by transfer, so that other
 * accounts cannot use up its whole number.
 */
export const TEAMS_BEFORE_TRANSFER_MAX = TEAMS_MAX / 2

/** A team as its members see it. */
export const TeamAnswer = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the team' }),
    name: Type.String({ description: 'Name of the team' }),
    ownerId: Type.String({ format: 'uuid', description: 'Id of the account that owns the team' }),
    createdAt: Type.String({ format: 'date-time', description: 'When the team was created' }),
    updatedAt: Type.String({ format: 'date-time', description: 'When the team was last changed' }),
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
