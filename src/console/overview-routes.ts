import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import type { Overview } from '../fleet/overview.ts'
import { type Asset, loadAssets } from './assets.ts'
import { overviewPage } from './overview-page.ts'

const SNAPSHOT_EVERY_MS = 1_000

/** After this a stream ends and the browser asks for another: a session that ended is noticed. */
const STREAM_MS_MAX = 15 * 60_000

const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}

/** The overview page, its files, and the stream that keeps it as things are. */
export async function overviewRoutes(scope: FastifyInstance, { log }: Context, overview: Overview): Promise<void> {
  const assets = await loadAssets()
  const streams = new Set<ServerResponse>()
  const page = { schema: { response: { 200: Type.String() } } }

  scope.get('/', page, async (_request, reply) => {
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8')
    return overviewPage(await overview.snapshot())
  })

  const asset = { schema: { params: Type.Object({ name: Type.String() }), response: { 200: Type.String() } } }
  scope.get<{ Params: { name: string } }>('/assets/:name', asset, async (request, reply) => {
    const found: Asset | undefined = assets.get(request.params.name)
    if (!found) throw new GatewayError('NOT_FOUND')
    reply.headers(PAGE_HEADERS).header('cache-control', 'private, max-age=300').type(found.type)
    return found.body
  })

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
      overview.snapshot().then(
        (snapshot) => {
          // A reader that does not keep up gets fewer, not a heap of old ones.
          if (!response.destroyed && !response.writableNeedDrain)
            response.write(`data: ${JSON.stringify(snapshot)}\n\n`)
        },
        (error) => log.warn({ err: error }, 'overview not taken'),
      )
    }
    send()
    const timer = setInterval(send, SNAPSHOT_EVERY_MS)
    const end = setTimeout(() => response.end(), STREAM_MS_MAX)
    request.raw.once('close', () => {
      clearInterval(timer)
      clearTimeout(end)
      streams.delete(response)
    })
  })

  scope.addHook('preClose', async () => {
    for (const response of streams) response.end()
  })
}
