import Type, { type Static } from 'typebox'
import type { Member } from '../db/teams.ts'

/**
 * A member of a team. A member is a user: both ids are the same, and `{memberId}` takes this id.
 */
export const MemberAnswer = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the membership' }),
    userId: Type.String({ format: 'uuid', description: 'Id of the account' }),
    email: Type.String({ description: 'Email address of the account' }),
    role: Type.Enum(['owner', 'admin', 'member'], { description: 'What the member may do' }),
    joinedAt: Type.String({ format: 'date-time', description: 'When the member was added' }),
    emailVerified: Type.Boolean({
      description: 'Whether the account has verified this email address',
    }),
  },
  { title: 'TeamMember' },
)

export function toMemberAnswer({ id, email, role, joinedAt, emailVerifiedAt }: Member): Static<typeof MemberAnswer> {
  return { id, userId: id, email, role, joinedAt: joinedAt.toISOString(), emailVerified: emailVerifiedAt !== null }
}
