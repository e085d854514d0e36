import type { Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { type Config, type ListenerAddress, orNaming } from '../../config.ts'
import type { Log } from '../../log.ts'
import { createServer } from '../../node-http.ts'
import { createId } from '../../queue/call-job.ts'
import { ClientLimits } from '../../throttles/client-limits.ts'
import { followCertificate } from './certificate.ts'
import { trustProxies } from './trusted-proxies.ts'

/**
 * How long a closing node continues to serve, so that load balancers first see a 503 of `readyz`.
 * Milliseconds.
 */
const DRAIN_MS = 1_500

/** Longest time for the head of a request that is redirected, milliseconds. */
const REDIRECTED_MS_MAX = 5_000

/** How long a closing node keeps a connection without a request open, milliseconds. */
const UNUSED_MS_MAX = 500

/**
 * Starts listening. If a redirect port is set, it also starts the plain listener, which only
 * redirects.
 *
 * @returns a function that stops listening
 */
export async function listen(app: FastifyInstance, http: Config['http'], log: Log): Promise<() => Promise<void>> {
  const closeUnused = followUnused(app.server)
  const { host } = http
  const address = { host, hostVariable: 'HOST', port: http.port, portVariable: 'PORT' }
  await orNaming(address, app.listen({ host, port: http.port }))
  const redirecting =
    http.redirectPort === undefined
      ? undefined
      : await orNaming(
          { ...address, port: http.redirectPort, portVariable: 'HTTP_REDIRECT_PORT' },
          listenAndRedirect(http, http.redirectPort),
        )
  const stopFollowing = http.tls && followCertificate(app.server, http.tls, log)
  const { port } = app.server.address() as AddressInfo
  if (http.baseUrl.startsWith('https:') && http.tls === undefined && http.trustProxy.length === 0) {
    log.warn(
      { baseUrl: http.baseUrl },
      'BASE_URL is https:, this node serves plain HTTP and trusts no proxy: it redirects every request; set TRUST_PROXY to the address of the proxy that ends TLS',
    )
  }
  log.info({ host, port, baseUrl: http.baseUrl }, 'listening')
  // If a supervisor started this process with a channel, it gets the port, because the system may
  // have chosen it.
  process.send?.({ listening: port })
  return async () => {
    await delay(DRAIN_MS)
    stopFollowing?.()
    redirecting?.close()
    const timer = setTimeout(closeUnused, UNUSED_MS_MAX)
    await app.close()
    clearTimeout(timer)
  }
}

/**
 * Tracks connections on which no request has arrived. Browsers open such connections in advance.
 * Node's server counts them as busy, and when it closes, it no longer applies time-outs to them.
 *
 * @returns a function that closes these connections
 */
function followUnused(server: Server): () => void {
  const unused = new Set<Socket>()
  server.on('setSecureContext' in server ? 'secureConnection' : 'connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  server.on('request', ({ socket }: { socket: Socket }) => unused.delete(socket))
  return () => {
    for (const socket of unused) socket.destroy()
  }
}

/**
 * Redirects requests over plain HTTP. Strangers can reach this listener too, and its connections
 * use the process's open files, so each client has a limit here as well.
 */
function listenAndRedirect(http: Config['http'], port: number): Promise<Server> {
  const { host, baseUrl, clients, trustProxy } = http
  // The head must arrive in time. Bodies are not read.
  const timeouts = { headersTimeout: REDIRECTED_MS_MAX, requestTimeout: REDIRECTED_MS_MAX }
  const server = createServer({ ...timeouts, connectionsCheckingInterval: 1_000 }, (request, response) => {
    const path = request.url?.startsWith('/') ? request.url : '/'
    const location = baseUrl + path
    const headers = { location, connection: 'close', 'content-length': 0, 'x-request-id': createId('req') }
    response.writeHead(308, headers).end()
  })
  new ClientLimits({ ...clients, isProxy: trustProxies(trustProxy) }).countConnections(server)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve(server))
  })
}

/**
 * Checks whether all listeners can have these addresses, by opening and closing them all at once.
 *
 * @throws ConfigError that names the variable of an address that cannot be used
 */
export async function checkAddresses(addresses: ListenerAddress[]): Promise<void> {
  const servers = addresses.map((address) => ({ address, server: createTcpServer() }))
  try {
    for (const [index, { address, server }] of servers.entries()) {
      const takenBy = addresses.slice(0, index).find(({ port }) => port === address.port)?.portVariable
      const listening = new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen({ host: address.host, port: address.port, exclusive: true }, resolve)
      })
      await orNaming({ ...address, takenBy }, listening)
    }
  } finally {
    await Promise.all(servers.map(({ server }) => new Promise((resolve) => server.close(resolve))))
  }
}
