import type { FastifyRequest } from 'fastify'
import type { Catalog } from '../catalog/catalog.ts'
import type { Config } from '../config.ts'
import { GatewayError } from '../errors.ts'
import { CALL_SCOPE, isResource, originForm, resourceOf, slugOf } from './resources.ts'

/**
 * Names of the documents that describe the authorization server. Both names serve the same
 * document.
 */
export const SERVER_DOCUMENTS = ['oauth-authorization-server', 'openid-configuration'] as const

/** Name of the document that describes a resource (RFC 9728). */
export const RESOURCE_DOCUMENT = 'oauth-protected-resource'

interface MetadataDeps {
  config: Config
  catalog: Catalog
}

/**
 * Routes of a document. Clients put the path of the resource after the name of the document (RFC
 * 8414, 3.1; RFC 9728, 3.1) or before it (OpenID Connect Discovery, 4.1).
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
 * The resource that the address of a metadata document names.
 *
 * @throws GatewayError NOT_FOUND, or API_NOT_FOUND for an API that the catalog does not have
 */
export function namedResource(
  { config, catalog }: MetadataDeps,
  request: Pick<FastifyRequest, 'originalUrl'>,
): NamedResource {
  const { baseUrl } = config.http
  const path = originForm(request.originalUrl).replace(WELL_KNOWN, '')
  const [withoutQuery = ''] = path.split('?', 1)
  // If a resource is served with a query, the query is part of its address. Otherwise a query has
  // no meaning.
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
 * The metadata of a resource. It must name exactly the address for which it was requested (RFC
 * 9728, 3.3).
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
