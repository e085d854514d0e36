import type { FastifyRequest } from 'fastify'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { CALL_SCOPE, isResource, originForm, resourceOf, slugOf } from './resources.ts'

/** Names of the documents that describe the authorization server: one document under both names. */
export const SERVER_DOCUMENTS = ['oauth-authorization-server', 'openid-configuration'] as const

/** Name of the document that describes a resource (RFC 9728). */
export const RESOURCE_DOCUMENT = 'oauth-protected-resource'

interface MetadataDeps {
  config: Config
  catalog: Catalog
}

/**
 * Routes of a document. Clients put the path of the resource behind the name of the document (RFC
 * 8414, 3.1; RFC 9728, 3.1), or before it (OpenID Connect Discovery, 4.1).
 */
export function documentPaths(name: string): string[] {
  const wellKnown = `/.well-known/${name}`
  const before = ['/mcp', '/mcp/:slug'].flatMap((path) => [`${path}${wellKnown}`, `${path}${wellKnown}/`])
  return [wellKnown, `${wellKnown}/*`, ...before]
}

/** A resource, and its address as the client spells it. */
interface NamedResource {
  address: string
  resource: string
}

/**
 * The resource that the address of a document names.
 *
 * @throws GatewayError NOT_FOUND, or API_NOT_FOUND for an API that there is not
 */
export function namedResource(
  { config, catalog }: MetadataDeps,
  request: Pick<FastifyRequest, 'originalUrl'>,
): NamedResource {
  const { baseUrl } = config.http
  const path = originForm(request.originalUrl).replace(WELL_KNOWN, '')
  const [withoutQuery = ''] = path.split('?', 1)
  // A query is part of the address of a resource that is served with a query, and means nothing
  // elsewhere.
  for (const named of [path, withoutQuery]) {
    const address = baseUrl + named
    const resource = resourceOf(address, baseUrl)
    if (resource === undefined) continue
    if (!isResource(resource, baseUrl, catalog)) throw new GatewayError('API_NOT_FOUND')
    return { address, resource }
  }
  throw new GatewayError('NOT_FOUND')
}

const WELL_KNOWN = /\/[.]well-known\/[\w-]+(?=[/?]|$)/

/**
 * What a resource says of itself. It names the very address for which it was requested (RFC 9728,
 * 3.3).
 */
export function resourceMetadata({ config, catalog }: MetadataDeps, { address, resource }: NamedResource): object {
  const { baseUrl } = config.http
  const api = catalog.get(slugOf(resource, baseUrl) ?? '')
  const name = api?.upstream.displayName ?? 'Agent API Gateway'
  return {
    resource: address,
    authorization_servers: [baseUrl],
    scopes_supported: [CALL_SCOPE, 'offline_access'],
    bearer_methods_supported: ['header'],
    resource_name: resource === baseUrl ? name : `${name} (MCP)`,
    resource_documentation: `${baseUrl}/agents`,
  }
}
