import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'

/**
 * Refuses a request that a browser sends for a page of another origin, unless the operator named
 * it. Programs that are no browsers send no Origin.
 *
 * @throws GatewayError FORBIDDEN
 */
export function requireOwnOrigin(request: FastifyRequest, baseUrl: string, named: string[] = []): void {
  const { origin } = request.headers
  if (
    origin === undefined ||
    origin === new URL(baseUrl).origin ||
    named.includes(origin) ||
    isOwnHost(origin, request)
  )
    return
  throw new GatewayError('FORBIDDEN', {
    message: 'The gateway does not accept requests from pages of this origin.',
    hint: 'Send the request from a server, or from a page of this gateway',
  })
}

/**
 * On a machine of one's own the gateway is reached by several names; the page and the request then
 * share one.
 */
function isOwnHost(origin: string, request: FastifyRequest): boolean {
  if (!URL.canParse(origin)) return false
  const { host, hostname } = new URL(origin)
  return /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname) && host === request.host
}
