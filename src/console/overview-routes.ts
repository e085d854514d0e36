import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { FleetReader } from '../fleet/fleet-reader.ts'
import type { Log } from '../log.ts'
import type { SettingsSync } from '../operator/upstream-settings.ts'
import { type Assets, serveAssets } from '../pages/assets.ts'
import { PAGE_POLICY } from '../pages/page-headers.ts'
import { streamLive } from './live-stream.ts'
import { isStillOperator } from './operator-guard.ts'
import type { OperatorSessions } from './operator-session.ts'
import { overviewPage } from './overview-page.ts'

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
  settings: Pick<SettingsSync, 'notice'>
}

/** The overview page, its files, and the stream that keeps the page up to date. */
export async function overviewRoutes(
  scope: FastifyInstance,
  { log, fleet, sessions, assets, settings }: OverviewDeps,
): Promise<void> {
  const streams = new Set<ServerResponse>()
  const page = { schema: { response: { 200: Type.String() } } }

  scope.get('/', page, async (_request, reply) => {
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8')
    return overviewPage(await fleet.snapshot(), assets, settings.notice)
  })

  // Without a session, the guard answers with its form.
  scope.get('/login', async (_request, reply) => reply.redirect('/', 303))

  // The page requests this while it shows 24 hours.
  scope.get('/overview/day', async () => ({ day: await fleet.lastDay() }))

  serveAssets(scope, assets, 'private')

  // A HEAD request gets no stream, because it would wait for the end of the stream.
  scope.get('/overview/events', { exposeHeadRoute: false }, async (request, reply) => {
    reply.hijack()
    const response = reply.raw
    streams.add(response)
    response.once('close', () => streams.delete(response))
    const isAllowed = () => isStillOperator(request, sessions)
    streamLive(response, { log, snapshot: () => fleet.snapshot(), isAllowed })
  })

  scope.addHook('preClose', async () => {
    for (const response of streams) response.end()
  })
}
