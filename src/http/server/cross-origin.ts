import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * Routes that pages of the origins that the operator allows may call. Never a route of accounts, a
 * form or a page.
 */
const CALLABLE = /^\/(v1\/(calls?|batch)|mcp)(\/|\?|$)/

/** How long a browser may remember the answer to a preflight, seconds. */
const PREFLIGHT_SECONDS = 3_600

/** Marks a request of the portal itself. Pages of other origins never send this header. */
const PORTAL_HEADER = 'x-portal-request'

const EXPOSED = [
  ...['X-Request-Id', 'X-Call-Id', 'Location', 'Link', 'Retry-After', 'WWW-Authenticate', 'Preference-Applied'],
  ...['RateLimit', 'RateLimit-Policy', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
  ...[
    'X-Gateway-Mode',
    'X-Gateway-Recorded-For',
    'X-Gateway-Example',
    'Cache-Status',
    'Age',
    'Server-Timing',
    'Mcp-Session-Id',
  ],
].join(', ')

/** @returns whether the request is a preflight, which must be answered without a credential */
export type AllowOrigin = (request: FastifyRequest, reply: FastifyReply) => boolean

/**
 * Lets pages of the allowed origins read the answers to calls, including refusals (Fetch standard,
 * 3.2). The pages send a key or a token themselves. No answer allows credentials, so a page cannot
 * read the answer to a request with a cookie.
 *
 * @returns undefined if the operator allows no origin
 */
export function allowOrigins(named: readonly string[]): AllowOrigin | undefined {
  const origins = new Set(named)
  return origins.size === 0 ? undefined : (request, reply) => allowOrigin(request, reply, origins)
}

function allowOrigin(request: FastifyRequest, reply: FastifyReply, origins: ReadonlySet<string>): boolean {
  if (!CALLABLE.test(request.url)) return false
  const { origin, 'access-control-request-method': method, 'access-control-request-headers': names } = request.headers
  reply.header('vary', 'Origin')
  if (origin === undefined || !origins.has(origin)) return false
  reply.header('access-control-allow-origin', origin).header('access-control-expose-headers', EXPOSED)
  if (request.method !== 'OPTIONS' || method === undefined) return false
  reply.header('access-control-allow-methods', 'GET, POST, DELETE')
  reply.header('access-control-max-age', PREFLIGHT_SECONDS)
  const allowed = (names ?? '').split(',').filter((name) => name.trim().toLowerCase() !== PORTAL_HEADER)
  if (names !== undefined) reply.header('access-control-allow-headers', allowed.join(','))
  return true
}
