import type { FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { KEYS_MAX } from '../accounts/key-schema.ts'
import { teamFor } from '../accounts/team-access.ts'
import { TEAMS_BEFORE_TRANSFER_MAX, TeamAnswer, toTeamAnswer } from '../accounts/team-schema.ts'
import { isUuid } from '../accounts/uuid.ts'
import type { Context } from '../context.ts'
import type { Db } from '../db/database.ts'
import { deleteTeam, transferTeam } from '../db/team-ownership.ts'
import { GatewayError } from '../errors.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { IdParams } from '../http/request/path-ids.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const TransferBody = Type.Object(
  {
    memberId: Type.String({ description: 'Id of the membership of the new owner; you become a plain member' }),
  },
  OPEN_BODY,
)

/** What only the owner of a team may do: transfer it, delete it. */
export async function teamOwnershipRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  routeDeletion(app, context)
  routeTransfer(app, context)
}

type TeamRequest = FastifyRequest<{ Params: Static<typeof IdParams> }>

const requireOwner = (db: Db, request: TeamRequest) =>
  teamFor(db, { teamId: request.params.id, userId: sessionOf(request).user.id }, ['owner'])

function routeDeletion(app: App, { db, redis }: Context): void {
  const remove = {
    config: { errors: ['TEAM_NOT_FOUND', 'FORBIDDEN'] as const },
    schema: {
      summary: 'Delete a team you own; the gateway refuses its keys from now on',
      tags: ['Teams'],
      params: IdParams,
      response: { 204: NoContent },
    },
  }
  app.delete('/v1/teams/:id', remove, async (request, reply) => {
    const team = await requireOwner(db, request)
    const remove = () => deleteTeam(db, team.id, team.owner_id)
    if (!(await withAnnouncement({ redis, log: request.log }, [team.owner_id], remove)))
      throw new GatewayError('TEAM_NOT_FOUND')
    return reply.status(204).send()
  })
}

function routeTransfer(app: App, { db, redis }: Context): void {
  const transfer = {
    config: {
      errors: ['TEAM_NOT_FOUND', 'MEMBER_NOT_FOUND', 'FORBIDDEN', 'TEAM_LIMIT_REACHED', 'KEY_LIMIT_REACHED'] as const,
    },
    schema: {
      summary: 'Make another member the owner of a team',
      description:
        'The gateway revokes every key of the team that the new owner did not create. The other keys count against the plan of the new owner. ' +
        'You and every other member become plain members until the new owner assigns roles.',
      tags: ['Teams'],
      params: IdParams,
      body: TransferBody,
      response: { 200: Type.Object({ team: TeamAnswer }) },
    },
    preValidation: async (request: TeamRequest) => void (await requireOwner(db, request)),
  }
  app.post('/v1/teams/:id/transfer', transfer, async (request) => {
    const ownerId = sessionOf(request).user.id
    const { memberId } = request.body
    if (!isUuid(memberId) || memberId === ownerId) throw new GatewayError('MEMBER_NOT_FOUND')
    const maxima = { teamsMax: TEAMS_BEFORE_TRANSFER_MAX, keysMax: KEYS_MAX }
    const team = await withAnnouncement({ redis, log: request.log }, [ownerId, memberId], async (accountIds) => {
      const result = await transferTeam(db, { teamId: request.params.id, ownerId, memberId, ...maxima })
      // The change was refused and nothing has changed. It is not revealed whether the other id is
      // an account.
      if (typeof result === 'string') accountIds.clear()
      return result
    })
    if (team === 'no such member') throw new GatewayError('MEMBER_NOT_FOUND')
    if (team === 'too many teams') {
      throw new GatewayError('TEAM_LIMIT_REACHED', {
        message: `The member owns ${TEAMS_BEFORE_TRANSFER_MAX} teams or more, and cannot receive another team by transfer.`,
        hint: 'Choose another member',
        tokens: { limit: TEAMS_BEFORE_TRANSFER_MAX },
      })
    }
    if (team === 'too many keys') {
      throw new GatewayError('KEY_LIMIT_REACHED', {
        message: 'The transfer would put the member over the limit of keys.',
        hint: 'Ask the member to revoke keys first, or choose another member',
        tokens: { limit: KEYS_MAX },
      })
    }
    return { team: toTeamAnswer(team) }
  })
}
