import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { createApiKey, hashApiKey, keyPrefix } from '../accounts/api-key.ts'
import { allowedMembers, readAllowed } from '../accounts/credential-limits.ts'
import { manageableKey, readExpiry } from '../accounts/key-access.ts'
import { CreatedKey, KEYS_MAX, KeyAnswer, toKeyAnswer } from '../accounts/key-schema.ts'
import { lockTeamFor, MANAGERS } from '../accounts/team-access.ts'
import { nullable } from '../catalog/json.ts'
import type { Context } from '../context.ts'
import { insertApiKey, listApiKeys, revokeApiKey } from '../db/api-keys.ts'
import type { Db } from '../db/database.ts'
import type { NewApiKey } from '../db/schema.ts'
import { GatewayError } from '../errors.ts'
import { PageQuery, readPage, sendablePage } from '../http/request/paging.ts'
import { IdParams } from '../http/request/path-ids.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { limitCredentials } from '../throttles/credential-limit.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

/** Most live keys that other accounts may make in the account's teams. */
const OTHERS_KEYS_MAX = 25

const CreateBody = Type.Object({
  label: Type.Optional(nullable(Type.String({ maxLength: 255, description: 'Your name for the key' }))),
  environment: Type.Optional(
    Type.Enum(['live', 'test'], {
      default: 'live',
      description: 'live reaches the real APIs; test is answered from recorded examples',
    }),
  ),
  teamId: Type.Optional(
    nullable(
      Type.String({
        format: 'uuid',
        description: 'Id of a team that you own or administer: the key becomes a key of this team',
      }),
    ),
  ),
  expiresAt: Type.Optional(
    nullable(Type.String({ format: 'date-time', description: 'Time from which the gateway refuses the key' })),
  ),
  ...allowedMembers,
})

/** API keys: list, create, revoke. */
export async function keyRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  // The body of a creation is optional.
  app.addHook('preValidation', async (request) => {
    if (request.body === undefined) request.body = {}
  })
  routeListing(app, context)
  routeCreation(app, context)
  routeRevocation(app, context)
}

function routeListing(app: App, { db }: Context): void {
  const list = {
    schema: {
      summary: 'List your API keys and the keys of teams that you manage',
      tags: ['Keys'],
      querystring: PageQuery,
      response: {
        200: Type.Object({ keys: Type.Array(KeyAnswer, { description: 'Your keys' }) }),
      },
    },
  }
  app.get('/v1/keys', list, async (request, reply) => {
    const page = readPage(request.query)
    const rows = await listApiKeys(db, sessionOf(request).user.id, page)
    return { keys: sendablePage(request as FastifyRequest, reply, { rows, limit: page.limit }).map(toKeyAnswer) }
  })
}

function routeCreation(app: App, context: Context): void {
  const { catalog, clock, config, db } = context
  const create = {
    config: { errors: ['KEY_LIMIT_REACHED', 'TEAM_NOT_FOUND', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'] as const },
    schema: {
      summary: 'Create an API key',
      tags: ['Keys'],
      body: CreateBody,
      response: { 201: CreatedKey },
    },
  }
  app.post('/v1/keys', create, async (request, reply) => {
    const { label, environment = 'live', teamId } = request.body
    const { user } = sessionOf(request)
    const expiresAt = readExpiry(request.body.expiresAt, clock.now())
    const key = createApiKey(environment)
    const row = {
      id: randomUUID(),
      created_by: user.id,
      environment,
      key_hash: hashApiKey(config.secrets.keyPepper, key),
      last_four: key.slice(-4),
      label: label ?? null,
      expires_at: expiresAt,
      ...readAllowed(catalog, request.body),
    }
    await limitCredentials(context, user.id, () => addKey(db, row, teamId ?? undefined))
    return reply.status(201).send({ key, id: row.id, keyPrefix: keyPrefix(environment) })
  })
}

/** A new key, before the account against which it counts is known. */
type MadeKey = Omit<NewApiKey, 'user_id' | 'team_id'> & { created_by: string }

/** @throws GatewayError KEY_LIMIT_REACHED, TEAM_NOT_FOUND or FORBIDDEN */
async function addKey(db: Db, key: MadeKey, teamId: string | undefined): Promise<void> {
  const userId = key.created_by
  const inserting = await db.transaction().execute(async (transaction) => {
    // Until the key is inserted, the lock keeps its team from being transferred (which revokes keys
    // of others) and its maker from being removed.
    const team = teamId === undefined ? undefined : await lockTeamFor(transaction, { teamId, userId }, MANAGERS)
    const owned = { ...key, user_id: team?.owner_id ?? userId, team_id: team?.id ?? null }
    return await insertApiKey(transaction, owned, { keysMax: KEYS_MAX, othersKeysMax: OTHERS_KEYS_MAX })
  })
  if (inserting === 'full') throw new GatewayError('KEY_LIMIT_REACHED', { tokens: { limit: KEYS_MAX } })
  if (inserting === 'full for others') {
    throw new GatewayError('KEY_LIMIT_REACHED', {
      message: 'The account that owns the team has reached its limit of keys made by other members.',
      hint: 'Revoke a key of the team, or ask its owner to create the key',
      tokens: { limit: OTHERS_KEYS_MAX },
    })
  }
}

function routeRevocation(app: App, { db, redis }: Context): void {
  const revoke = {
    config: { errors: ['KEY_NOT_FOUND', 'FORBIDDEN'] as const },
    schema: {
      summary: 'Revoke an API key: the gateway refuses it from now on',
      tags: ['Keys'],
      params: IdParams,
      response: { 204: NoContent },
    },
  }
  app.delete('/v1/keys/:id', revoke, async (request, reply) => {
    const key = await manageableKey(db, request.params.id, sessionOf(request).user.id)
    const isRevoked = await withAnnouncement({ redis, log: request.log }, [key.user_id], async (accountIds) => {
      const accountId = await revokeApiKey(db, key.id)
      // The key may count against another account than at the look-up, because its team may have
      // been transferred.
      if (accountId !== undefined) accountIds.add(accountId)
      return accountId !== undefined
    })
    if (!isRevoked) throw new GatewayError('KEY_NOT_FOUND')
    return reply.status(204).send()
  })
}
