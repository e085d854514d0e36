import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { holdsApiKey, OWN_KEY_REFUSED } from '../accounts/api-key.ts'
import { keyScope, maskKey } from '../accounts/provider-key.ts'
import { ProviderKeyAnswer, providerKeyAnswer } from '../accounts/provider-key-schema.ts'
import { providerKeyRecord } from '../accounts/sealed-records.ts'
import { seal } from '../accounts/secret-box.ts'
import { lockTeamFor, MANAGERS, teamFor } from '../accounts/team-access.ts'
import { missingForLiveCalls, shareGroupOf } from '../accounts/trust.ts'
import { liveCallsRefused } from '../admission/rights.ts'
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
  setValidationFailure,
} from '../db/provider-keys.ts'
import type { ProviderKey } from '../db/schema.ts'
import type { SessionUser } from '../db/sessions.ts'
import { GatewayError } from '../errors.ts'
import { OPEN_BODY } from '../http/request/closed-bodies.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { enqueueRevalidateKey, enqueueValidateKey, type ValidateKeyJob } from '../queue/validate-key-job.ts'
import { HOUR_MS, takeThrottle } from '../throttles/throttle.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

/**
 * Most validations per hour of keys for one API that an account, or all Free accounts of one
 * network, may cause by saving a key or by requesting a validation. Each validation is a request of
 * the shared cap.
 */
const VALIDATIONS_PER_HOUR = 10

/** How long a request waits for a validation, milliseconds. The validation itself continues. */
const VALIDATE_WAIT_MS = 10_000

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
  const { config, db, catalog, queues } = context
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
    const shown = isHeld(catalog, slug) ? await noteHold(db, saved) : saved
    // The key is saved even if Redis is away. It can be validated later.
    await enqueueValidateKey(queues, slug, validationOf(context, user, saved.id)).catch((error) =>
      request.log.warn({ err: error, providerKeyId: saved.id }, 'failed to queue the validation of a key'),
    )
    return providerKeyAnswer(catalog, shown)
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
  const { db, catalog, queues } = context
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
    if (isHeld(catalog, slug)) {
      await noteHold(db, key)
      // Nobody waits for the result, so one job serves any number of requests.
      await enqueueRevalidateKey(queues, slug, validationOf(context, user, key.id))
    } else await validateNow(context, key, user)
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

/** Whether operators hold requests to the API. Validations then wait in the queue, like calls. */
function isHeld(catalog: Catalog, slug: string): boolean {
  return catalog.get(slug)?.pausedMode === 'hold'
}

/**
 * Records that a key will be checked when its API is resumed. Call it before the validation is
 * queued, so that it does not overwrite the result.
 */
async function noteHold(db: Db, key: ProviderKey): Promise<ProviderKey> {
  return (await setValidationFailure(db, key.id, { code: 'API_PAUSED', nextAt: new Date() })) ?? key
}

/** Queues a validation, and waits some time for its result. */
async function validateNow(context: Context, { id, slug }: ProviderKey, user: SessionUser): Promise<void> {
  const { queues, replies } = context
  const replyId = `validate_${randomUUID()}`
  const { reply, forget } = replies.awaitReply(replyId)
  const waited = new AbortController()
  try {
    const job = { ...validationOf(context, user, id), reply: { id: replyId, to: replies.stream } }
    await enqueueValidateKey(queues, slug, job)
    await Promise.race([reply, delay(VALIDATE_WAIT_MS, undefined, { signal: waited.signal })])
  } finally {
    waited.abort()
    forget()
  }
}

function validationOf({ config }: Context, user: SessionUser, providerKeyId: string): ValidateKeyJob {
  return { v: 1, providerKeyId, group: shareGroupOf(user, config.secrets.keyPepper) }
}

/**
 * A validation is a request to the upstream, so an account that may not make live calls gets none.
 *
 * @throws GatewayError
 */
async function takeValidation(context: Context, user: SessionUser, slug: string): Promise<void> {
  const { accounts, secrets } = context.config
  const missing = missingForLiveCalls(user, accounts.signup)
  if (missing !== undefined) throw liveCallsRefused(missing)
  await takeThrottle(context, {
    name: 'key-validate',
    subject: `${shareGroupOf(user, secrets.keyPepper)} ${slug}`,
    max: VALIDATIONS_PER_HOUR,
    windowMs: HOUR_MS,
    code: 'RATE_LIMIT_EXCEEDED',
    hint: 'Wait before saving or validating more provider keys',
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
