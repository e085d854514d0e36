import { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IsProxy } from './trusted-proxies.ts'

/**
 * A year (RFC 6797). Only for this host, because we do not decide how other hosts of the domain are
 * served.
 */
const HSTS = 'max-age=31536000'

/** @returns whether the request was answered */
export type Redirect = (request: FastifyRequest, reply: FastifyReply) => boolean

/**
 * Redirects a plain-HTTP request to the same path at the public `https:` address, before anything
 * else happens. The scheme that the client used is the scheme of the connection, or
 * `X-Forwarded-Proto` of a trusted proxy.
 *
 * @returns undefined if the public address is not `https:`
 */
export function redirectToHttps(options: RedirectOptions): Redirect | undefined {
  return options.baseUrl.startsWith('https:') ? (request, reply) => redirectIfPlain(request, reply, options) : undefined
}

interface RedirectOptions {
  baseUrl: string
  isProxy: IsProxy
}

function redirectIfPlain(request: FastifyRequest, reply: FastifyReply, { baseUrl, isProxy }: RedirectOptions): boolean {
  // This process makes the call itself for a request that was accepted, so there is no connection
  // to redirect.
  if (!(request.raw.socket instanceof Socket)) return false
  if (schemeOf(request, isProxy) === 'https') {
    reply.header('strict-transport-security', HSTS)
    return false
  }
  // Monitoring on this machine or beside it uses plain HTTP.
  if (request.routeOptions.config?.isProbe) return false
  // Only the path is used, because an address in absolute form could name another host.
  const path = [request.originalUrl, request.raw.url].find((url) => url?.startsWith('/')) ?? '/'
  reply
    .header('location', baseUrl + path)
    .status(308)
    .send()
  return true
}

/**
 * Fastify's own answer is not enough: if Fastify itself refuses the address of a request, it trusts
 * no proxy for it.
 */
function schemeOf({ raw, protocol }: FastifyRequest, isProxy: IsProxy): string {
  const forwarded = raw.headers['x-forwarded-proto']
  if (!forwarded || !isProxy(raw.socket.remoteAddress)) return protocol
  // The last value is from the nearest proxy. A scheme may have any letter case (RFC 3986, 3.1).
  return String(forwarded).split(',').at(-1)?.trim().toLowerCase() ?? ''
}
