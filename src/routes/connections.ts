import Type from 'typebox'
import { isUuid } from '../accounts/session-token.ts'
import type { Context } from '../context.ts'
import { listConnections, revokeConnection } from '../db/connections.ts'
import { GatewayError } from '../errors.ts'
import { type App, NoContent } from '../http/typed-app.ts'
import { announced } from '../limits/account-version.ts'
import { guardWithSession, sessionOf } from './session-guard.ts'

const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) => Type.Union([type, Type.Null()])

const ConnectionAnswer = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the connection' }),
    clientId: Type.String({ description: 'Id of the application' }),
    clientName: Type.String({ description: 'Free text of the application' }),
    redirectHost: Type.String({ description: 'Where the application took its code' }),
    resource: Type.String({ description: 'What its tokens are good for' }),
    apis: Nullable(Type.Array(Type.String(), { description: 'APIs it may call; null: all' })),
    perMonth: Nullable(Type.Integer({ description: 'Calls a month it may make; null: as many as the plan allows' })),
    createdAt: Type.String({ format: 'date-time', description: 'When it signed in' }),
    lastUsedAt: Nullable(Type.String({ format: 'date-time', description: 'When it last called, to the minute' })),
  },
  { title: 'Connection' },
)

/** Applications that signed in to an account. */
export async function connectionRoutes(app: App, context: Context): Promise<void> {
  const { db, redis } = context
  guardWithSession(app, context)

  const list = {
    schema: {
      summary: 'List the applications that are signed in to your account',
      tags: ['Connections'],
      response: {
        200: Type.Object({ connections: Type.Array(ConnectionAnswer, { description: 'Applications that signed in' }) }),
      },
    },
  }
  app.get('/v1/connections', list, async (request) => {
    const connections = await listConnections(db, sessionOf(request).user.id)
    return {
      connections: connections.map((connection) => ({
        id: connection.id,
        clientId: connection.client_id,
        clientName: connection.client_name,
        redirectHost: connection.redirect_host,
        resource: connection.resource,
        apis: connection.apis,
        perMonth: connection.per_month,
        createdAt: connection.created_at.toISOString(),
        lastUsedAt: connection.last_used_at?.toISOString() ?? null,
      })),
    }
  })

  const end = {
    config: { errors: ['CONNECTION_NOT_FOUND'] as const },
    schema: {
      summary: 'Sign an application out: its tokens are refused from the next request on',
      tags: ['Connections'],
      params: Type.Object({ id: Type.String({ description: 'Id of the connection' }) }),
      response: { 204: NoContent },
    },
  }
  app.delete('/v1/connections/:id', end, async (request, reply) => {
    const { id } = request.params
    const { user } = sessionOf(request)
    // Another account's connection is 404, like a connection that never was.
    const end = () => revokeConnection(db, id, user.id)
    const hasEnded = isUuid(id) && (await announced({ redis, log: request.log }, [user.id], end))
    if (!hasEnded) throw new GatewayError('CONNECTION_NOT_FOUND')
    return reply.status(204).send()
  })
}
