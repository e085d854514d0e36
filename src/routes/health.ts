import Type from 'typebox'
import { SingleFlight } from '../async/single-flight.ts'
import type { Context } from '../context.ts'
import type { App } from '../http/request/typed-app.ts'
import type { ReadinessReport } from '../telemetry/readiness.ts'

const Ready = Type.Object({
  status: Type.Enum(['ready', 'draining', 'unavailable'], { description: 'Whether the process accepts new requests' }),
  postgres: Type.Boolean({ description: 'Whether Postgres answers and has the schema of this version' }),
  redis: Type.Boolean({ description: 'Whether Redis answers, and its configuration and version are supported' }),
  problems: Type.Array(Type.String(), { description: 'What an operator has to change' }),
})

/** Whether the process is up, and whether it can serve. */
export async function healthRoutes(app: App, context: Context): Promise<void> {
  const config = { isProbe: true } as const
  const up = {
    config,
    schema: {
      summary: 'The process is up',
      tags: ['Service'],
      response: { 200: Type.Object({ status: Type.Literal('ok', { description: 'Always ok' }) }) },
    },
  }
  app.get('/healthz', up, async () => ({ status: 'ok' as const }))

  // Nobody is refused here, because concurrent requests share one check of each store.
  const checks = new SingleFlight<ReadinessReport>()
  const ready = {
    config,
    schema: {
      summary: 'Postgres and Redis are usable, and the process accepts new requests',
      tags: ['Service'],
      response: { 200: Ready, 503: Ready },
    },
  }
  app.get('/readyz', ready, async (_request, reply) => {
    const report = await checks.run('', () => context.telemetry.readiness.check())
    return reply.status(report.status === 'ready' ? 200 : 503).send(report)
  })
}
