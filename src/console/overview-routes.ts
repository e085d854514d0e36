import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { FleetReader } from '../fleet/fleet-reader.ts'
import { type Assets, serveAssets } from '../http/assets.ts'
import { PAGE_POLICY } from '../http/page-headers.ts'
import type { Log } from '../log.ts'
import { isStillOperator } from './operator-guard.ts'
import type { OperatorSessions } from './operator-session.ts'
import { overviewPage } from './overview-page.ts'

const SNAPSHOT_EVERY_MS = 1_000

/** How often a stream's session is looked at: one that ended ends its stream. Milliseconds. */
const SESSION_CHECK_MS = 5_000

const PAGE_HEADERS = {
  'content-security-policy': PAGE_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}

export interface OverviewDeps {
  log: Log
  fleet: FleetReader
  sessions: OperatorSessions
  assets: Assets
}

/** The overview page, its files, and the stream that keeps it as things are. */
export async function overviewRoutes(
  scope: FastifyInstance,
  { log, fleet, sessions, assets }: OverviewDeps,
): Promise<void> {
  const streams = new Set<ServerResponse>()
  const page = { schema: { response: { 200: Type.String() } } }

  scope.get('/', page, async (_request, reply) => {
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8')
    return overviewPage(await fleet.snapshot(), assets)
  })

  serveAssets(scope, assets, 'private')

  scope.get('/overview/events', async (request, reply) => {
    reply.hijack()
    const response = reply.raw
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    streams.add(response)
    const send = (): void => {
      fleet.snapshot().then(
        (snapshot) => {
          // A reader that does not keep up gets fewer, not a heap of old ones.
          if (!response.destroyed && !response.writableNeedDrain)
            response.write(`data: ${JSON.stringify(snapshot)}\n\n`)
        },
        (error) => log.warn({ err: error }, 'failed to read the fleet'),
      )
    }
    send()
    const timer = setInterval(send, SNAPSHOT_EVERY_MS)
    const check = setInterval(() => {
      isStillOperator(request, sessions).then((is) => is || response.end())
    }, SESSION_CHECK_MS)
    request.raw.once('close', () => {
      clearInterval(timer)
      clearInterval(check)
      streams.delete(response)
    })
  })

  scope.addHook('preClose', async () => {
    for (const response of streams) response.end()
  })
}
