import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'

type Request = Pick<FastifyRequest, 'headers' | 'host'>

/**
 * Refuses a request that a browser sends for a page of another origin, unless the operator allows
 * the origin. Programs other than browsers send no Origin.
 *
 * @throws GatewayError FORBIDDEN
 */
export function requireOwnOrigin(request: Request, baseUrl: string, named: string[] = []): void {
  const { origin } = request.headers
  if (origin === undefined || named.includes(origin) || isOwnOrigin(origin, request, baseUrl)) return
  throw new GatewayError('FORBIDDEN', {
    message: 'The gateway does not accept requests from pages of this origin.',
    hint: `Send the request from a server, or from a page at ${new URL(baseUrl).origin}, the gateway's BASE_URL`,
  })
}

/**
 * Whether a page of this origin is a page of the gateway: it is at the public address, or at the
 * address of the request if that is localhost or an IP address. Another name is not enough, because
 * the owner of a name can point it here after the page was loaded (DNS rebinding).
 */
export function isOwnOrigin(origin: string, request: Request, baseUrl: string): boolean {
  if (origin === new URL(baseUrl).origin) return true
  if (!URL.canParse(origin)) return false
  const { host, hostname } = new URL(origin)
  const isWithoutDns = hostname === 'localhost' || isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0
  return isWithoutDns && host === request.host
}
