import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { KeyAnswer, toKeyAnswer } from '../accounts/key-schema.ts'
import { MemberAnswer, toMemberAnswer } from '../accounts/member-schema.ts'
import { ALL_ROLES, lockTeamFor, MANAGERS, teamFor } from '../accounts/team-access.ts'
import { TEAMS_MAX, TeamAnswer, toTeamAnswer } from '../accounts/team-schema.ts'
import type { Context } from '../context.ts'
import { listTeamKeys } from '../db/api-keys.ts'
import { insertTeam, listMembers, listTeams, renameTeam } from '../db/teams.ts'
import { GatewayError } from '../errors.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { PageQuery, readPage, sendablePage } from '../http/request/paging.ts'
import { IdParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const NameBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100, pattern: '\\S', description: 'Name of the team' }),
  },
  OPEN_BODY,
)

/**
 * Teams: list, create, view, rename. Rights are checked before the body, so that a stranger learns
 * nothing about either.
 */
export async function teamRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  routeListing(app, context)
  routeCreation(app, context)
  routeView(app, context)
  routeRenaming(app, context)
}

function routeListing(app: App, { db }: Context): void {
  const list = {
    schema: {
      summary: 'List the teams you are in',
      tags: ['Teams'],
      querystring: PageQuery,
      response: {
        200: Type.Object({ teams: Type.Array(TeamAnswer, { description: 'Teams you belong to' }) }),
      },
    },
  }
  app.get('/v1/teams', list, async (request, reply) => {
    const page = readPage(request.query)
    const rows = await listTeams(db, sessionOf(request).user.id, page)
    return { teams: sendablePage(request as FastifyRequest, reply, { rows, limit: page.limit }).map(toTeamAnswer) }
  })
}

function routeCreation(app: App, { db }: Context): void {
  const create = {
    config: { errors: ['TEAM_LIMIT_REACHED'] as const },
    schema: {
      summary: 'Create a team, which you own',
      tags: ['Teams'],
      body: NameBody,
      response: { 201: Type.Object({ team: TeamAnswer }) },
    },
  }
  app.post('/v1/teams', create, async (request, reply) => {
    const ownerId = sessionOf(request).user.id
    const team = await insertTeam(db, { id: randomUUID(), name: request.body.name, ownerId }, TEAMS_MAX)
    if (!team) throw new GatewayError('TEAM_LIMIT_REACHED', { tokens: { limit: TEAMS_MAX } })
    return reply.status(201).send({ team: toTeamAnswer(team) })
  })
}

function routeView(app: App, { db }: Context): void {
  const view = {
    config: { errors: ['TEAM_NOT_FOUND'] as const },
    schema: {
      summary: 'View a team you are in: its members and its own keys',
      tags: ['Teams'],
      params: IdParams,
      response: {
        200: Type.Object({
          team: TeamAnswer,
          members: Type.Array(MemberAnswer, { description: 'Its members' }),
          keys: Type.Array(KeyAnswer, { description: 'Its keys' }),
          yourRole: Type.Enum(['owner', 'admin', 'member'], { description: 'Your role in the team' }),
        }),
      },
    },
  }
  app.get('/v1/teams/:id', view, async (request) => {
    const team = await teamFor(db, { teamId: request.params.id, userId: sessionOf(request).user.id }, ALL_ROLES)
    const [members, keys] = await Promise.all([listMembers(db, team.id), listTeamKeys(db, team.id)])
    return {
      team: toTeamAnswer(team),
      members: members.map(toMemberAnswer),
      keys: keys.map(toKeyAnswer),
      yourRole: team.role,
    }
  })
}

function routeRenaming(app: App, { db }: Context): void {
  const rename = {
    config: { errors: ['TEAM_NOT_FOUND', 'FORBIDDEN'] as const },
    schema: {
      summary: 'Rename a team',
      tags: ['Teams'],
      params: IdParams,
      body: NameBody,
      response: { 200: Type.Object({ team: TeamAnswer }) },
    },
    preValidation: async (request: FastifyRequest<{ Params: Static<typeof IdParams> }>) => {
      await teamFor(db, { teamId: request.params.id, userId: sessionOf(request).user.id }, MANAGERS)
    },
  }
  app.put('/v1/teams/:id', rename, async (request) => {
    const teamId = request.params.id
    const { user } = sessionOf(request)
    const renamed = await db.transaction().execute(async (transaction) => {
      await lockTeamFor(transaction, { teamId, userId: user.id }, MANAGERS)
      return await renameTeam(transaction, teamId, request.body.name)
    })
    return { team: toTeamAnswer(renamed) }
  })
}
