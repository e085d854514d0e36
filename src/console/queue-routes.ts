import Type from 'typebox'
import { GatewayError } from '../errors.ts'
import type { FleetReader } from '../fleet/fleet-reader.ts'
import type { App } from '../http/request/typed-app.ts'
import type { Assets } from '../pages/assets.ts'
import { sendPage } from '../pages/page-headers.ts'
import { queuePage, queuesPage } from './queue-pages.ts'

/** The pages of all queues and of one queue. They are read-only. */
export async function queueRoutes(
  scope: App,
  { fleet, assets }: { fleet: FleetReader; assets: Assets },
): Promise<void> {
  scope.get('/queues', async (_request, reply) => sendPage(reply, queuesPage(await fleet.snapshot(), assets)))

  const params = Type.Object({ slug: Type.String() })
  scope.get('/queues/:slug', { schema: { params } }, async (request, reply) => {
    const view = await fleet.queueOf(request.params.slug)
    if (!view) throw new GatewayError('NOT_FOUND', { message: 'The catalog has no such API.' })
    return sendPage(reply, queuePage(view, assets))
  })
}
