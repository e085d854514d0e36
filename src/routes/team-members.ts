import type { FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { MemberAnswer, toMemberAnswer } from '../accounts/member-schema.ts'
import { ALL_ROLES, lockTeamFor, MANAGERS, teamFor } from '../accounts/team-access.ts'
import { isUuid } from '../accounts/uuid.ts'
import type { Context } from '../context.ts'
import type { Db } from '../db/database.ts'
import { removeMember } from '../db/remove-member.ts'
import { findMember, insertMember, type Member, updateMemberRole } from '../db/teams.ts'
import { findUserByEmail } from '../db/users.ts'
import { GatewayError } from '../errors.ts'
import { IdParams } from '../http/request/path-ids.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { takeThrottles } from '../throttles/throttle.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

/**
 * Unknown addresses that an account may try per minute, because adding members reveals who has
 * signed up.
 */
const UNKNOWN_EMAILS_PER_MINUTE = 20

/** Members that one account may add per minute, because people are added without being asked. */
const ADDITIONS_PER_MINUTE = 100

const Role = Type.Enum(['admin', 'member'], { description: 'New role of the member' })
const AddBody = Type.Object({
  email: Type.String({ format: 'email', maxLength: 254, description: 'Email address of an existing account' }),
  role: Type.Optional(Type.Enum(['admin', 'member'], { default: 'member', description: 'Role of the member' })),
})
const RoleBody = Type.Object({ role: Role })
const RemoveQuery = Type.Object({
  revokeKeys: Type.Optional(
    Type.Enum(['true', 'false'], { description: 'Whether to revoke the keys of the team that the member created' }),
  ),
})
const OneMember = Type.Object({ member: MemberAnswer })

const MemberParams = Type.Object({ id: Type.String(), memberId: Type.String() })

/** Members of a team: add, change role, remove. Rights are checked before the body. */
export async function teamMemberRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  routeAddition(app, context)
  routeRoleChange(app, context)
  routeRemoval(app, context)
}

function routeAddition(app: App, context: Context): void {
  const { db } = context
  const add = {
    config: {
      errors: ['TEAM_NOT_FOUND', 'FORBIDDEN', 'USER_NOT_FOUND', 'ALREADY_MEMBER', 'RATE_LIMIT_EXCEEDED'] as const,
    },
    schema: {
      summary: 'Add a member by email',
      tags: ['Teams'],
      params: IdParams,
      body: AddBody,
      response: { 201: OneMember },
    },
    preValidation: async (request: FastifyRequest<{ Params: Static<typeof IdParams> }>) => {
      await teamFor(db, { teamId: request.params.id, userId: sessionOf(request).user.id }, MANAGERS)
    },
  }
  app.post('/v1/teams/:id/members', add, async (request, reply) => {
    const { email, role = 'member' } = request.body
    const teamId = request.params.id
    const adderId = sessionOf(request).user.id
    const userId = await findUserToAdd(context, adderId, email)
    const isInserted = await db.transaction().execute(async (transaction) => {
      await lockTeamFor(transaction, { teamId, userId: adderId }, MANAGERS)
      return await insertMember(transaction, { teamId, userId }, role)
    })
    if (!isInserted) throw new GatewayError('ALREADY_MEMBER')
    return reply.status(201).send({ member: toMemberAnswer(await memberOf(db, teamId, userId)) })
  })
}

function routeRoleChange(app: App, { db }: Context): void {
  const change = {
    config: { errors: ['TEAM_NOT_FOUND', 'MEMBER_NOT_FOUND', 'FORBIDDEN', 'OWNER_IMMUTABLE'] as const },
    schema: {
      summary: 'Change the role of a member',
      tags: ['Teams'],
      params: MemberParams,
      body: RoleBody,
      response: { 200: OneMember },
    },
    preValidation: async (request: FastifyRequest<{ Params: Static<typeof MemberParams> }>) => {
      const { id, memberId } = request.params
      const team = await teamFor(db, { teamId: id, userId: sessionOf(request).user.id }, ALL_ROLES)
      const member = await memberOf(db, id, memberId)
      if (team.role !== 'owner') throw new GatewayError('FORBIDDEN')
      if (member.role === 'owner') throw new GatewayError('OWNER_IMMUTABLE')
    },
  }
  app.put('/v1/teams/:id/members/:memberId', change, async (request) => {
    const { id, memberId } = request.params
    const isChanged = await db.transaction().execute(async (transaction) => {
      // The owner at the check may have transferred the team since.
      await lockTeamFor(transaction, { teamId: id, userId: sessionOf(request).user.id }, ['owner'])
      return await updateMemberRole(transaction, { teamId: id, userId: memberId }, request.body.role)
    })
    if (!isChanged) throw new GatewayError('MEMBER_NOT_FOUND')
    return { member: toMemberAnswer(await memberOf(db, id, memberId)) }
  })
}

function routeRemoval(app: App, { db, redis }: Context): void {
  const remove = {
    config: { errors: ['TEAM_NOT_FOUND', 'MEMBER_NOT_FOUND', 'FORBIDDEN', 'OWNER_IMMUTABLE'] as const },
    schema: {
      summary: 'Remove a member, or leave',
      description: 'The keys of the team that the member created stay valid, unless `revokeKeys` is true.',
      tags: ['Teams'],
      params: MemberParams,
      querystring: RemoveQuery,
      response: { 204: NoContent },
    },
  }
  app.delete('/v1/teams/:id/members/:memberId', remove, async (request, reply) => {
    const { id: teamId, memberId } = request.params
    const { user } = sessionOf(request)
    const revokesKeys = request.query.revokeKeys === 'true'
    await withAnnouncement({ redis, log: request.log }, [], (accountIds) =>
      db.transaction().execute(async (transaction) => {
        // Checked under the lock, because of two admins who remove each other only one may succeed.
        const team = await lockTeamFor(transaction, { teamId, userId: user.id }, ALL_ROLES)
        const member = await memberOf(transaction, teamId, memberId)
        if (team.role === 'member' && member.id !== user.id) throw new GatewayError('FORBIDDEN')
        if (member.role === 'owner') throw ownerImmutable(member.id === user.id)
        if (revokesKeys) accountIds.add(team.owner_id)
        await removeMember(transaction, { teamId, memberId: member.id, revokesKeys })
      }),
    )
    return reply.status(204).send()
  })
}

function ownerImmutable(isLeaving: boolean): GatewayError {
  const hint = 'Make another member the owner with POST /v1/teams/{id}/transfer, or delete the team'
  return new GatewayError('OWNER_IMMUTABLE', isLeaving ? { hint } : {})
}

/**
 * @throws GatewayError USER_NOT_FOUND; RATE_LIMIT_EXCEEDED if the account has tried many unknown
 *   addresses
 */
async function findUserToAdd(context: Context, callerId: string, email: string): Promise<string> {
  const throttle = {
    subject: callerId,
    code: 'RATE_LIMIT_EXCEEDED',
    hint: 'Wait before you add more members',
  } as const
  const [, refund] = await takeThrottles(context, [
    { ...throttle, name: 'member-add', max: ADDITIONS_PER_MINUTE },
    { ...throttle, name: 'member-unknown', max: UNKNOWN_EMAILS_PER_MINUTE },
  ])
  const user = await findUserByEmail(context.db, email)
  if (!user) {
    const isClosed = context.config.accounts.signup === 'closed'
    const hint = 'Ask the operator of this gateway to open sign-up for the person'
    throw new GatewayError('USER_NOT_FOUND', { ...(isClosed ? { hint } : {}), tokens: { param: 'email' } })
  }
  if (context.mailer && user.email_verified_at === null) {
    throw new GatewayError('USER_NOT_FOUND', {
      message: 'No user has verified this address.',
      hint: 'Ask the person to open the link in the mail from the gateway',
      tokens: { param: 'email' },
    })
  }
  refund?.()
  return user.id
}

/** @throws GatewayError MEMBER_NOT_FOUND */
async function memberOf(db: Db, teamId: string, memberId: string): Promise<Member> {
  const member = isUuid(memberId) ? await findMember(db, teamId, memberId) : undefined
  if (!member) throw new GatewayError('MEMBER_NOT_FOUND')
  return member
}
