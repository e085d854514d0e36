import type { FastifyRequest } from 'fastify'
import type { Catalog } from '../catalog/catalog.ts'
import { GatewayError } from '../errors.ts'
import { isInProcess } from '../http/caller-socket.ts'

/** The one scope of access tokens. */
export const CALL_SCOPE = 'call'

const CALLS = /^\/v1\/(?:call\/|calls\/|batch(?:[?]|$))/
const MCP = /^\/mcp(?:\/([a-z0-9-]+))?(?:[?]|$)/

/** Path of the resource that a request is for: `/mcp`, `/mcp/weather`, empty for the call routes; undefined for others. */
function resourcePath(url: string): string | undefined {
  if (CALLS.test(url)) return ''
  const match = MCP.exec(url)
  if (!match) return undefined
  return match[1] === undefined ? '/mcp' : `/mcp/${match[1]}`
}

/**
 * A resource indicator in the form in which it is compared. An address without a path is the same with a slash
 * (RFC 3986, 6.2.3), which whatever parses it adds; behind a path a slash makes it another one.
 */
export function comparableResource(indicator: string, baseUrl: string): string {
  return indicator === `${baseUrl}/` ? baseUrl : indicator
}

/** Whether a resource indicator (RFC 8707) is one of ours. */
export function isResource(indicator: string, baseUrl: string, catalog: Catalog): boolean {
  if (comparableResource(indicator, baseUrl) === baseUrl || indicator === `${baseUrl}/mcp`) return true
  const prefix = `${baseUrl}/mcp/`
  return indicator.startsWith(prefix) && catalog.has(indicator.slice(prefix.length))
}

/**
 * What a 401 says of how to sign in (RFC 9728, 5.1): where the metadata of the resource is. For requests of other routes
 * nothing is added to the challenge.
 */
export function challengeFor(url: string, challenge: string, baseUrl: string): string {
  const path = resourcePath(url)
  if (path === undefined) return challenge
  const metadata = `${baseUrl}/.well-known/oauth-protected-resource${path}`
  return `${challenge}, resource_metadata="${metadata}", scope="${CALL_SCOPE}"`
}

/**
 * Refuses an access token that is good for another resource than the one a request is for. Calls that a tool makes in
 * this process belong to the request that was checked.
 *
 * @throws GatewayError INVALID_TOKEN
 */
export function requireAudience(
  { connection }: { connection?: { resource: string } | undefined },
  request: Pick<FastifyRequest, 'url'>,
  baseUrl: string,
): void {
  if (!connection || isInProcess()) return
  const path = resourcePath(request.url)
  if (path !== undefined && connection.resource === `${baseUrl}${path}`) return
  throw new GatewayError('INVALID_TOKEN', {
    message: 'The access token is good for another resource.',
    hint: `Ask for a token with resource=${baseUrl}${path ?? ''}`,
  })
}
