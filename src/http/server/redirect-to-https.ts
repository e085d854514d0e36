import { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { IsProxy } from './trusted-proxies.ts'

/**
 * A year (RFC 6797). Of this host alone: what other names of the domain serve is not ours to
 * decide.
 */
const HSTS = 'max-age=31536000'

/** @returns whether the request is answered */
export type Redirect = (request: FastifyRequest, reply: FastifyReply) => boolean

/**
 * Sends a plain-HTTP request to the same address under the public `https:` one, before anything
 * else happens to it. The connection shows which scheme the client used, or `X-Forwarded-Proto` of
 * a trusted proxy does.
 *
 * @returns undefined if the public address is not `https:`
 */
export function redirectToHttps(options: RedirectOptions): Redirect | undefined {
  return options.baseUrl.startsWith('https:') ? (request, reply) => redirect(request, reply, options) : undefined
}

interface RedirectOptions {
  baseUrl: string
  isProxy: IsProxy
}

function redirect(request: FastifyRequest, reply: FastifyReply, { baseUrl, isProxy }: RedirectOptions): boolean {
  // A call that this process makes for a request it has let in already: no connection, nothing to
  // redirect.
  if (!(request.raw.socket instanceof Socket)) return false
  if (schemeOf(request, isProxy) === 'https') {
    reply.header('strict-transport-security', HSTS)
    return false
  }
  // Machines beside this machine request it over plain HTTP.
  if (request.routeOptions.config?.isProbe) return false
  // Only a path is taken over: an absolute-form target could name another host.
  const path = request.raw.url?.startsWith('/') ? request.raw.url : '/'
  reply
    .header('location', baseUrl + path)
    .status(308)
    .send()
  return true
}

/**
 * Not Fastify's answer alone: a request whose address cannot be decoded is one for which it trusts
 * no proxy.
 */
function schemeOf({ raw, protocol }: FastifyRequest, isProxy: IsProxy): string {
  const forwarded = raw.headers['x-forwarded-proto']
  if (!forwarded || !isProxy(raw.socket.remoteAddress)) return protocol
  // The last value is the word of the proxy next to us. A scheme may have any letter case (RFC
  // 3986, 3.1).
  return String(forwarded).split(',').at(-1)?.trim().toLowerCase() ?? ''
}
