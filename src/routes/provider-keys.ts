import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { holdsApiKey, OWN_KEY_REFUSED } from '../accounts/api-key.ts'
import { keyScope, maskKey } from '../accounts/provider-key.ts'
import { ProviderKeyAnswer, providerKeyAnswer } from '../accounts/provider-key-schema.ts'
import { providerKeyRecord } from '../accounts/sealed-records.ts'
import { seal } from '../accounts/secret-box.ts'
import { lockTeamFor, MANAGERS, teamFor } from '../accounts/team-access.ts'
import { takeValidation, validateAgain, validateSoon } from '../calls/key-validation.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { apiNotFound } from '../catalog/unknown-api.ts'
import type { Context } from '../context.ts'
import type { Db } from '../db/database.ts'
import {
  deleteProviderKey,
  findProviderKeyOf,
  listProviderKeys,
  type ProviderKeyOwner,
  saveProviderKey,
} from '../db/provider-keys.ts'
import { GatewayError } from '../errors.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

/** Printable ASCII only, because the key becomes part of a header or a URL. */
const PutBody = Type.Object(
  {
    key: Type.String({
      minLength: 1,
      maxLength: 512,
      pattern: '^[\\x21-\\x7e]+$',
      description: 'Your key for the API',
    }),
  },
  OPEN_BODY,
)

const ApiParams = Type.Object({ apiSlug: Type.String() })

const OwnerQuery = Type.Object({
  teamId: Type.Optional(
    Type.String({
      maxLength: 64,
      description:
        'Id of a team that you own or administer. The request then concerns the provider keys of the team, which the keys of the team use',
    }),
  ),
})

type HolderRequest = Pick<FastifyRequest, 'id' | 'log'> & { query: { teamId?: string } }

/**
 * The owner of the provider keys in a request.
 *
 * @throws GatewayError TEAM_NOT_FOUND; FORBIDDEN for a plain member
 */
async function holderOf(db: Db, request: HolderRequest): Promise<ProviderKeyOwner> {
  const userId = sessionOf(request).user.id
  const { teamId } = request.query
  if (teamId === undefined) return { userId }
  return { teamId: (await teamFor(db, { teamId, userId }, MANAGERS)).id }
}

/**
 * Changes provider keys, and announces the change to the account whose calls use them. A team is
 * locked meanwhile, so that it keeps its owner and its roles.
 *
 * @throws GatewayError TEAM_NOT_FOUND; FORBIDDEN for a plain member; and what the change throws
 */
function changeKeys<T>(
  { db, redis }: Pick<Context, 'db' | 'redis'>,
  request: HolderRequest,
  change: (transaction: Db, owner: ProviderKeyOwner) => Promise<T>,
): Promise<T> {
  const userId = sessionOf(request).user.id
  const { teamId } = request.query
  return withAnnouncement({ redis, log: request.log }, [], (accountIds) =>
    db.transaction().execute(async (transaction) => {
      const team = teamId === undefined ? undefined : await lockTeamFor(transaction, { teamId, userId }, MANAGERS)
      accountIds.add(team?.owner_id ?? userId)
      return await change(transaction, team ? { teamId: team.id } : { userId })
    }),
  )
}

/** Provider keys of accounts and teams: list, save, delete, validate. No answer contains a key. */
export async function providerKeyRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  routeListing(app, context)
  routeSaving(app, context)
  routeDeletion(app, context)
  routeValidation(app, context)
}

function routeListing(app: App, { db, catalog }: Context): void {
  const list = {
    config: { errors: ['TEAM_NOT_FOUND', 'FORBIDDEN'] as const },
    schema: {
      summary: 'List your provider keys, or the provider keys of a team',
      tags: ['Provider keys'],
      querystring: OwnerQuery,
      response: {
        200: Type.Object({ providerKeys: Type.Array(ProviderKeyAnswer, { description: 'Your stored keys' }) }),
      },
    },
  }
  app.get('/v1/provider-keys', list, async (request) => {
    const keys = await listProviderKeys(db, await holderOf(db, request))
    return { providerKeys: keys.flatMap((key) => providerKeyAnswer(catalog, key) ?? []) }
  })
}

function routeSaving(app: App, context: Context): void {
  const { config, db, catalog } = context
  const put = {
    config: { errors: ['API_NOT_FOUND', 'TEAM_NOT_FOUND', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'] as const },
    schema: {
      summary: 'Save your key for an upstream; the gateway begins to validate it at once',
      tags: ['Provider keys'],
      params: ApiParams,
      querystring: OwnerQuery,
      operationId: 'putProviderKey',
      body: PutBody,
      response: { 200: ProviderKeyAnswer },
    },
  }
  app.put('/v1/provider-keys/:apiSlug', put, async (request) => {
    const { slug } = apiTakingKeys(catalog, request.params.apiSlug)
    const { user } = sessionOf(request)
    const holder = await holderOf(db, request)
    const ownerId = 'teamId' in holder ? holder.teamId : holder.userId
    const { key } = request.body
    if (holdsApiKey(key)) {
      throw new GatewayError('VALIDATION_ERROR', {
        message: OWN_KEY_REFUSED,
        hint: `Send your key for ${slug}`,
        tokens: { param: 'key' },
      })
    }
    await takeValidation(context, user, slug)
    const sealed = seal(config.secrets.encryption, providerKeyRecord(ownerId, slug), key)
    const row = {
      id: randomUUID(),
      slug,
      secret_id: sealed.secretId,
      sealed: sealed.bytes,
      cap_scope: keyScope(config.secrets.keyPepper, slug, key),
      masked: maskKey(key),
    }
    const saved = await changeKeys(context, request, (transaction, owner) => saveProviderKey(transaction, owner, row))
    return providerKeyAnswer(catalog, await validateSoon(context, { user, log: request.log }, saved))
  })
}

function routeDeletion(app: App, context: Context): void {
  const remove = {
    config: { errors: ['API_NOT_FOUND', 'KEY_NOT_FOUND', 'TEAM_NOT_FOUND', 'FORBIDDEN'] as const },
    schema: {
      summary: 'Delete your key for an upstream',
      tags: ['Provider keys'],
      params: ApiParams,
      querystring: OwnerQuery,
      response: { 204: NoContent },
    },
  }
  app.delete('/v1/provider-keys/:apiSlug', remove, async (request, reply) => {
    const { slug } = knownApi(context.catalog, request.params.apiSlug)
    await changeKeys(context, request, async (transaction, owner) => {
      if (!(await deleteProviderKey(transaction, owner, slug))) throw noProviderKey()
    })
    return reply.status(204).send()
  })
}

function routeValidation(app: App, context: Context): void {
  const { db, catalog } = context
  const validate = {
    config: {
      errors: ['API_NOT_FOUND', 'KEY_NOT_FOUND', 'TEAM_NOT_FOUND', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'] as const,
    },
    schema: {
      summary: 'Validate your key at the upstream',
      tags: ['Provider keys'],
      params: ApiParams,
      querystring: OwnerQuery,
      response: { 200: ProviderKeyAnswer },
    },
  }
  app.post('/v1/provider-keys/:apiSlug/validate', validate, async (request) => {
    const { user } = sessionOf(request)
    const { slug } = knownApi(catalog, request.params.apiSlug)
    const owner = await holderOf(db, request)
    const key = await findProviderKeyOf(db, owner, slug)
    if (!key) throw noProviderKey()
    await takeValidation(context, user, slug)
    await validateAgain(context, user, key)
    const validated = await findProviderKeyOf(db, owner, slug)
    if (!validated) throw noProviderKey()
    return providerKeyAnswer(catalog, validated)
  })
}

function noProviderKey(): GatewayError {
  return new GatewayError('KEY_NOT_FOUND', {
    message: 'You have no provider key for this API.',
    hint: 'List your provider keys with GET /v1/provider-keys',
  })
}

function knownApi(catalog: Catalog, slug: string): Api {
  const api = catalog.get(slug)
  if (!api) throw apiNotFound(offeredApis(catalog), slug)
  return api
}

/**
 * @throws GatewayError API_NOT_FOUND; VALIDATION_ERROR for an API that accepts no keys of callers
 */
function apiTakingKeys(catalog: Catalog, slug: string): Api {
  const api = knownApi(catalog, slug)
  const accessMode = api.upstream.credential?.accessMode ?? 'platform_managed'
  if (accessMode === 'platform_managed') {
    throw new GatewayError('VALIDATION_ERROR', {
      message: `The API ${slug} does not accept provider keys of callers.`,
      tokens: { param: 'apiSlug' },
    })
  }
  return api
}
