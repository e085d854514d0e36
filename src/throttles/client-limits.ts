import type { Server } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import { ClientBuckets } from './client-buckets.ts'
import { clientsAround } from './client-network.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Whether the route is for machines that watch this node. Its requests count against nobody.
     */
    isProbe?: boolean
    /**
     * Units that a request without an account takes from the bucket of its address. A unit is about
     * 1 ms of work. Default: 1.
     */
    anonymousUnits?: number
  }
}

interface ClientLimitOptions {
  /** Connections of one client address at once; 0 is no bound. */
  connectionsMax: number
  /**
   * Units per second that requests without an account may take from one client address; 0 is no
   * bound.
   */
  anonymousPerSecond: number
  /** Whether an address is a proxy's. A proxy's connections carry the requests of many clients. */
  isProxy: (address: string) => boolean
}

/** Size of a bucket in seconds: the units of so many seconds may be taken at once. */
const BURST_SECONDS = 2

/** Units of a page that the node renders for each request. */
export const PAGE_UNITS = 3

/**
 * Limits what one client address takes of a node. The counts are in this process. Fails open: if
 * the process has forgotten a client, the client may take as much as a new client.
 */
export class ClientLimits {
  readonly #connectionsMax: number
  readonly #isProxy: (address: string) => boolean
  readonly #connections = new Map<string, number>()
  readonly #surplus = new WeakSet<Socket>()
  readonly #anonymous: ClientBuckets

  constructor({ connectionsMax, anonymousPerSecond, isProxy }: ClientLimitOptions) {
    this.#connectionsMax = connectionsMax
    this.#isProxy = isProxy
    this.#anonymous = new ClientBuckets({ perSecond: anonymousPerSecond, burst: anonymousPerSecond * BURST_SECONDS })
  }

  /**
   * Counts the connections of a server. Above the limit, a connection's first request is refused.
   * Above twice the limit, the connection is closed at once.
   */
  countConnections(server: Server | HttpsServer): void {
    if (this.#connectionsMax === 0) return
    const event = 'setSecureContext' in server ? 'secureConnection' : 'connection'
    server.on(event, (socket: Socket) => {
      const address = socket.remoteAddress
      if (address === undefined || this.#isProxy(address)) return
      const networks = clientsAround(address)
      socket.once('close', () => this.#forgetConnection(networks.map(({ name }) => name)))
      for (const { name, clients } of networks) {
        const count = (this.#connections.get(name) ?? 0) + 1
        this.#connections.set(name, count)
        if (count > clients * this.#connectionsMax) this.#surplus.add(socket)
        if (count > 2 * clients * this.#connectionsMax) socket.destroy()
      }
    })
  }

  /** @throws GatewayError RATE_LIMIT_EXCEEDED for a request on a connection above the limit */
  checkConnection(request: FastifyRequest): void {
    if (!this.#surplus.has(request.raw.socket)) return
    throw new GatewayError('RATE_LIMIT_EXCEEDED', {
      message: 'Too many connections come from this address.',
      hint: 'Reuse connections for several requests',
      retryAfterMs: 1_000,
    })
  }

  /**
   * Takes the units of a request that belongs to no account.
   *
   * @throws GatewayError RATE_LIMIT_EXCEEDED
   */
  takeAnonymous(request: FastifyRequest): void {
    // This process made the request itself, on behalf of a request that has been counted.
    if (!(request.raw.socket instanceof Socket)) return
    const retryAfterMs = this.#anonymous.take(request.ip, request.routeOptions.config.anonymousUnits)
    if (retryAfterMs === 0) return
    throw new GatewayError('RATE_LIMIT_EXCEEDED', {
      message: 'Too many requests without an account come from this address.',
      hint: 'Wait and send the request again',
      retryAfterMs,
    })
  }

  #forgetConnection(networks: string[]): void {
    for (const name of networks) {
      const count = (this.#connections.get(name) ?? 1) - 1
      if (count === 0) this.#connections.delete(name)
      else this.#connections.set(name, count)
    }
  }
}
