import { randomUUID } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { createApiKey, hashApiKey, keyPrefix } from '../accounts/api-key.ts'
import { allowedMembers, readAllowed } from '../accounts/credential-limits.ts'
import { manageableKey, readExpiry } from '../accounts/key-access.ts'
import { CreatedKey, KEYS_MAX, KeyAnswer, toKeyAnswer } from '../accounts/key-schema.ts'
import { lockTeamFor, MANAGERS } from '../accounts/team-access.ts'
import { nullable } from '../catalog/json.ts'
import type { Context } from '../context.ts'
import type { Db } from '../db/database.ts'
import { lockApiKey, type RotationOutcome, rotateKey, updateApiKey } from '../db/rotate-key.ts'
import type { ApiKey } from '../db/schema.ts'
import { GatewayError } from '../errors.ts'
import { IdParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { forgetAfterLimit, forgetBeforeLimit, type LimitChange } from '../limits/changed-limits.ts'
import { limitCredentials } from '../throttles/credential-limit.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const OVERLAP_SECONDS_MAX = 604_800
const OVERLAP_SECONDS_DEFAULT = 86_400

const Expiry = (description: string) => Type.Optional(nullable(Type.String({ format: 'date-time', description })))

const ChangeBody = Type.Object(
  {
    label: Type.Optional(nullable(Type.String({ maxLength: 255, description: 'Your name for the key; null: none' }))),
    expiresAt: Expiry('Time from which the gateway refuses the key; null: never'),
    ...allowedMembers,
  },
  { minProperties: 1 },
)

const RotateBody = Type.Object({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: OVERLAP_SECONDS_MAX,
      default: OVERLAP_SECONDS_DEFAULT,
      description: 'How long the old key stays valid; 0: the gateway refuses it at once',
    }),
  ),
  expiresAt: Expiry(
    'Time from which the gateway refuses the new key; null: never; absent: the new key is valid for as long as the old key originally was',
  ),
})

const RotateAnswer = Type.Object({
  ...CreatedKey.properties,
  previous: Type.Object(
    {
      id: Type.String({ format: 'uuid', description: 'Id of the old key' }),
      expiresAt: Type.String({ format: 'date-time', description: 'Time from which the gateway refuses the old key' }),
    },
    { description: 'The key that the new key replaces' },
  ),
})

/** Changes of an API key (label, expiry, APIs, addresses, limits), and its rotation. */
export async function keyChangeRoutes(app: App, context: Context): Promise<void> {
  guardWithSession(app, context)
  // The body of a rotation is optional.
  app.addHook('preValidation', async (request) => {
    if (request.body === undefined && request.method === 'POST') request.body = {}
  })
  routeChange(app, context)
  routeRotation(app, context)
}

function routeChange(app: App, context: Context): void {
  const { db, redis, catalog, clock } = context
  const change = {
    config: { errors: ['KEY_NOT_FOUND', 'KEY_ALREADY_ROTATED', 'FORBIDDEN'] as const },
    schema: {
      operationId: 'updateKey',
      summary: 'Change the label, the expiry, the APIs, the addresses, the limits or the right to write of an API key',
      description:
        'A field that is absent does not change, and null removes its value. Every node applies the change from the next request on. Keys of one rotation share their APIs, addresses, limits and right to write.',
      tags: ['Keys'],
      params: IdParams,
      body: ChangeBody,
      response: { 200: KeyAnswer },
    },
  }
  app.patch('/v1/keys/:id', change, async (request) => {
    const { user } = sessionOf(request)
    const key = await manageableKey(db, request.params.id, user.id)
    const { label, expiresAt } = request.body
    const own = {
      ...(label === undefined ? {} : { label }),
      ...(expiresAt === undefined ? {} : { expires_at: readExpiry(expiresAt, clock.now()) }),
    }
    const allowed = readAllowed(catalog, request.body)
    let limitChange: LimitChange | undefined
    const changed = await withAnnouncement({ redis, log: request.log }, [key.user_id], (accountIds) =>
      db.transaction().execute(async (transaction) => {
        const locked = await lockManaged(transaction, key, user.id)
        if (locked.replaced_by !== null && expiresAt !== undefined) throw new GatewayError('KEY_ALREADY_ROTATED')
        // The key may count against another account by now, because its team may have been
        // transferred.
        accountIds.add(locked.user_id)
        const after = await updateApiKey(transaction, locked, { own, allowed })
        const credentialId = locked.limits_id ?? locked.id
        limitChange = { accountId: locked.user_id, credentialId, before: locked.per_month, after: after.per_month }
        await forgetBeforeLimit(context, limitChange)
        return after
      }),
    )
    if (limitChange) await forgetAfterLimit(context, limitChange)
    return toKeyAnswer(changed)
  })
}

function routeRotation(app: App, context: Context): void {
  const { db, redis, config, clock } = context
  const rotate = {
    config: {
      errors: [
        'KEY_NOT_FOUND',
        'KEY_ALREADY_ROTATED',
        'KEY_LIMIT_REACHED',
        'FORBIDDEN',
        'RATE_LIMIT_EXCEEDED',
      ] as const,
    },
    schema: {
      operationId: 'rotateKey',
      summary: 'Replace an API key by a new key; the old key stays valid for a while',
      description:
        'The new key has the label, environment, team, APIs, addresses and limits of the old key, and calls with either key count together. Both keys work until the old key ends. The lastUsedAt of the old key shows whether anybody still uses it.',
      tags: ['Keys'],
      params: IdParams,
      body: RotateBody,
      response: { 201: RotateAnswer },
    },
  }
  app.post('/v1/keys/:id/rotate', rotate, async (request, reply) => {
    const { user } = sessionOf(request)
    const key = await manageableKey(db, request.params.id, user.id)
    const { overlapSeconds = OVERLAP_SECONDS_DEFAULT, expiresAt } = request.body
    const secret = createApiKey(key.environment)
    const made = {
      id: randomUUID(),
      created_by: user.id,
      key_hash: hashApiKey(config.secrets.keyPepper, secret),
      last_four: secret.slice(-4),
    }
    const rotation = {
      ...{ made, overlapSeconds, overlapsMax: KEYS_MAX },
      expiresAt: expiresAt === undefined ? undefined : readExpiry(expiresAt, clock.now()),
    }
    const previous = await limitCredentials(context, user.id, () =>
      withAnnouncement({ redis, log: request.log }, [key.user_id], (accountIds) =>
        db.transaction().execute(async (transaction) => {
          accountIds.add((await lockManaged(transaction, key, user.id)).user_id)
          return previousOf(await rotateKey(transaction, key.id, rotation))
        }),
      ),
    )
    const answer = { key: secret, id: made.id, keyPrefix: keyPrefix(key.environment), previous }
    return reply.status(201).header('cache-control', 'no-store').send(answer)
  })
}

/**
 * Locks the team before the key, the order that all changes of teams use.
 *
 * @throws GatewayError KEY_NOT_FOUND
 */
async function lockManaged(transaction: Db, { id, team_id }: ApiKey, userId: string): Promise<ApiKey> {
  if (team_id !== null) await lockTeamFor(transaction, { teamId: team_id, userId }, MANAGERS)
  const key = await lockApiKey(transaction, id)
  if (!key) throw ended()
  return key
}

const ended = (): GatewayError =>
  new GatewayError('KEY_NOT_FOUND', { message: 'The API key was revoked or has expired.', hint: 'Create another key' })

/** @throws GatewayError if the rotation was refused */
function previousOf(outcome: RotationOutcome): Static<typeof RotateAnswer>['previous'] {
  if (outcome.kind === 'rotated') {
    const { id, expires_at } = outcome.previous
    return { id, expiresAt: (expires_at ?? new Date()).toISOString() }
  }
  if (outcome.kind === 'rotated before') throw new GatewayError('KEY_ALREADY_ROTATED')
  if (outcome.kind === 'ended') throw ended()
  throw new GatewayError('KEY_LIMIT_REACHED', {
    message: 'The account has reached its limit of rotated keys that still work.',
    hint: 'Revoke a key that was rotated, or wait until such a key ends',
    tokens: { limit: KEYS_MAX },
  })
}
