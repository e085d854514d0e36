import Type, { type Static } from 'typebox'
import { allowedAnswerMembers, allowedMembers, readAllowed, toAllowedAnswer } from '../accounts/credential-limits.ts'
import { isUuid } from '../accounts/uuid.ts'
import type { Context } from '../context.ts'
import { listConnections, lockConnection, revokeConnection, updateConnection } from '../db/connections.ts'
import type { Connection } from '../db/schema.ts'
import { GatewayError } from '../errors.ts'
import { type App, NoContent } from '../http/request/typed-app.ts'
import { withAnnouncement } from '../limits/account-version.ts'
import { forgetAfterLimit, forgetBeforeLimit, type LimitChange } from '../limits/changed-limits.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) => Type.Union([type, Type.Null()])

const ConnectionAnswer = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the connection' }),
    clientId: Type.String({ description: 'Id of the application' }),
    clientName: Type.String({ description: 'Name that the application gave itself; nobody has checked it' }),
    redirectHost: Type.String({ description: 'Host to which the application was redirected when it signed in' }),
    resource: Type.String({ description: 'The resource for which its tokens are valid' }),
    ...allowedAnswerMembers,
    perMonth: Nullable(Type.Integer({ description: 'The same number as perMonth in limits' })),
    createdAt: Type.String({ format: 'date-time', description: 'When the application signed in' }),
    lastUsedAt: Nullable(
      Type.String({ format: 'date-time', description: 'When the application last called, to the minute' }),
    ),
  },
  { title: 'Connection' },
)

/** Applications that are connected to an account. */
export async function connectionRoutes(app: App, context: Context): Promise<void> {
  const { db, redis } = context
  guardWithSession(app, context)

  const list = {
    schema: {
      summary: 'List the applications that are signed in to your account',
      tags: ['Connections'],
      response: {
        200: Type.Object({
          connections: Type.Array(ConnectionAnswer, { description: 'Applications that are signed in' }),
        }),
      },
    },
  }
  app.get('/v1/connections', list, async (request) => {
    const connections = await listConnections(db, sessionOf(request).user.id)
    return {
      connections: connections.map(toConnectionAnswer),
    }
  })
  routeChange(app, context)

  const end = {
    config: { errors: ['CONNECTION_NOT_FOUND'] as const },
    schema: {
      summary: 'Sign an application out: the gateway refuses its tokens from the next request on',
      tags: ['Connections'],
      params: Type.Object({ id: Type.String({ description: 'Id of the connection' }) }),
      response: { 204: NoContent },
    },
  }
  app.delete('/v1/connections/:id', end, async (request, reply) => {
    const { id } = request.params
    const { user } = sessionOf(request)
    // A connection of another account answers 404, like a connection that never existed.
    const end = () => revokeConnection(db, id, user.id)
    const hasEnded = isUuid(id) && (await withAnnouncement({ redis, log: request.log }, [user.id], end))
    if (!hasEnded) throw new GatewayError('CONNECTION_NOT_FOUND')
    return reply.status(204).send()
  })
}

function toConnectionAnswer(connection: Connection): Static<typeof ConnectionAnswer> {
  return {
    id: connection.id,
    clientId: connection.client_id,
    clientName: connection.client_name,
    redirectHost: connection.redirect_host,
    resource: connection.resource,
    ...toAllowedAnswer(connection),
    perMonth: connection.per_month,
    createdAt: connection.created_at.toISOString(),
    lastUsedAt: connection.last_used_at?.toISOString() ?? null,
  }
}

const ChangeBody = Type.Object(allowedMembers, { minProperties: 1 })

function routeChange(app: App, context: Context): void {
  const { db, redis, catalog } = context
  const change = {
    config: { errors: ['CONNECTION_NOT_FOUND'] as const },
    schema: {
      operationId: 'updateConnection',
      summary: 'Change the APIs, the addresses, the limits or the right to write of an application',
      description:
        'A field that is absent does not change, and null removes a limit or a list. Every node applies the change from the next request on.',
      tags: ['Connections'],
      params: Type.Object({ id: Type.String({ description: 'Id of the connection' }) }),
      body: ChangeBody,
      response: { 200: ConnectionAnswer },
    },
  }
  app.patch('/v1/connections/:id', change, async (request) => {
    const { id } = request.params
    const { user } = sessionOf(request)
    const allowed = readAllowed(catalog, request.body)
    let limitChange: LimitChange | undefined
    const changed = await withAnnouncement({ redis, log: request.log }, [user.id], () =>
      db.transaction().execute(async (transaction) => {
        const before = isUuid(id) ? await lockConnection(transaction, id, user.id) : undefined
        if (!before) throw new GatewayError('CONNECTION_NOT_FOUND')
        const after = await updateConnection(transaction, id, allowed)
        limitChange = { accountId: user.id, credentialId: id, before: before.per_month, after: after.per_month }
        await forgetBeforeLimit(context, limitChange)
        return after
      }),
    )
    if (limitChange) await forgetAfterLimit(context, limitChange)
    return toConnectionAnswer(changed)
  })
}
