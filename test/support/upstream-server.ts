import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A request as the upstream saw it. */
export interface Arrival {
  slug: string
  /** Path and query below the slug's prefix. */
  url: string
  headers: IncomingHttpHeaders
  /** performance.now() when it arrived. */
  at: number
}

/**
 * Answers one request. If it returns a value, the server sends that value as JSON with status 200.
 */
export type Play = (arrival: Arrival, response: ServerResponse, request: IncomingMessage) => unknown

/**
 * A loopback server that plays upstreams. Each slug has a path prefix and a script of its own, and
 * the server records every request.
 */
export interface UpstreamServer {
  port: number
  arrivals: Arrival[]
  /** Sets the script of a slug from now on. */
  play: (slug: string, script: Play) => void
  /** The variables `UPSTREAM_<SLUG>_URL` of these slugs. */
  environment: (...slugs: string[]) => Record<string, string>
  arrivalsOf: (slug: string) => Arrival[]
  close: () => Promise<void>
}

export async function startUpstreamServer(): Promise<UpstreamServer> {
  const scripts = new Map<string, Play>()
  const arrivals: Arrival[] = []
  const sockets = new Set<Socket>()
  const server = createServer(async (request, response) => {
    const [, slug = '', ...rest] = (request.url ?? '').split('/')
    const arrival = { slug, url: `/${rest.join('/')}`, headers: request.headers, at: performance.now() }
    arrivals.push(arrival)
    const script = scripts.get(slug)
    if (!script) return void response.writeHead(500).end()
    const body = await script(arrival, response, request)
    if (body !== undefined && !response.headersSent) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  // The server must not keep the process of a test alive whose set-up failed.
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    arrivals,
    play: (slug, script) => void scripts.set(slug, script),
    environment: (...slugs) =>
      Object.fromEntries(
        slugs.map((slug) => [
          `UPSTREAM_${slug.toUpperCase().replaceAll('-', '_')}_URL`,
          `http://127.0.0.1:${port}/${slug}`,
        ]),
      ),
    arrivalsOf: (slug) => arrivals.filter((arrival) => arrival.slug === slug),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
