import type { FastifyInstance } from 'fastify'
import { sql } from 'kysely'
import Type from 'typebox'
import { SingleFlight } from '../async/single-flight.ts'
import type { Context } from '../context.ts'

const Ready = Type.Object({
  status: Type.Enum(['ready', 'draining', 'unavailable']),
  postgres: Type.Boolean(),
  redis: Type.Boolean(),
})

/** Whether the process is up, and whether it can serve. */
export async function healthRoutes(app: FastifyInstance, context: Context): Promise<void> {
  const up = {
    config: { isProbe: true },
    schema: {
      summary: 'The process is up',
      tags: ['Service'],
      response: { 200: Type.Object({ status: Type.Literal('ok') }) },
    },
  }
  app.get('/healthz', up, async () => ({ status: 'ok' }))

  // Nobody is refused here: those who ask at once share one question to each store.
  const checks = new SingleFlight<boolean>()
  const ready = {
    config: { isProbe: true },
    schema: { summary: 'Postgres and Redis answer', tags: ['Service'], response: { 200: Ready, 503: Ready } },
  }
  app.get('/readyz', ready, async (_request, reply) => {
    const [postgres, redis] = await Promise.all([
      checks.run('postgres', () => isAnswering(() => sql`select 1`.execute(context.db))),
      checks.run('redis', () => isAnswering(() => context.redis.ping())),
    ])
    const isReady = postgres && redis && !context.isDraining
    const status = context.isDraining ? 'draining' : isReady ? 'ready' : 'unavailable'
    return reply.status(isReady ? 200 : 503).send({ status, postgres, redis })
  })
}

async function isAnswering(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask()
    return true
  } catch {
    // The answer says that it does not; why is in the connection's own log lines.
    return false
  }
}
