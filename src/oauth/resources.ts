import type { FastifyRequest } from 'fastify'
import type { Catalog } from '../catalog/catalog.ts'
import { GatewayError } from '../errors.ts'
import { isMadeByTool } from '../http/request/caller-socket.ts'

/** The only scope of access tokens. */
export const CALL_SCOPE = 'call'

const CALLS = /^\/v1\/(?:call\/|calls\/|catalog\/|batch(?:[?]|$))/
const MCP = /^\/mcp(?:\/[^/]+)?(?=\/?$)/

/** Every request passes here. Few addresses need to be parsed. */
const MAY_BE_MCP = /^\/mcp|^[^?]*(?:%|\/\.)/

/**
 * The address of MCP that a request's address means, in the spelling that is routed: dot segments,
 * percent-encoded letters and a slash at the end make no other address (RFC 3986, 6.2). The query
 * stays as it is.
 *
 * @returns undefined for an address that is none of MCP
 */
export function mcpAddress(target: string): string | undefined {
  if (!MAY_BE_MCP.test(target)) return undefined
  const path = mcpPath(normalPath(URL.parse(`http://gateway${target}`)))
  return path === undefined ? undefined : path + queryOf(target)
}

/**
 * Path and query of a request's address. Its absolute form (RFC 9112, 3.2.2) names a host that we
 * do not look at.
 */
export function originForm(url: string): string {
  return url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/')
}

function mcpPath(path: string | undefined): string | undefined {
  return path === undefined ? undefined : MCP.exec(path)?.[0]
}

function queryOf(target: string): string {
  const start = target.indexOf('?')
  return start < 0 ? '' : target.slice(start)
}

/**
 * The path of an address; its parser has resolved dot segments. Unreserved letters need no encoding
 * (RFC 3986, 6.2.2.2).
 */
function normalPath(address: URL | null): string | undefined {
  return address?.pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => {
    const letter = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return /[\w.~-]/.test(letter) ? letter : encoded
  })
}

/**
 * Path of the resource that a request is for: `/mcp`, `/mcp/weather`, empty for the call routes;
 * undefined for others.
 */
function resourcePath(url: string): string | undefined {
  if (CALLS.test(url)) return ''
  return mcpAddress(url)?.replace(/[?].*/s, '')
}

/**
 * The resource that an address means: each spelling under which the MCP routes serve a client is
 * the same resource, and so is the address without a path with a slash. Scheme and host are
 * compared as RFC 3986, 6.2 says, and a query such as `?apis=` chooses tools, no other resource.
 *
 * @returns undefined for an address that is none of a resource, or that may not name one (RFC 8707,
 *   2: no fragment)
 */
export function resourceOf(address: string, baseUrl: string): string | undefined {
  // The parser takes white space and backslashes, which no address has.
  const given = /[\s\\#]/.test(address) ? null : URL.parse(address)
  if (given?.origin !== new URL(baseUrl).origin || given.username + given.password !== '') return undefined
  const path = normalPath(given)
  if (path === '/') return given.search === '' ? baseUrl : undefined
  const served = mcpPath(path)
  return served === undefined ? undefined : baseUrl + served
}

/** Slug of the API whose MCP server a resource is; undefined for the other resources. */
export function slugOf(resource: string, baseUrl: string): string | undefined {
  const prefix = `${baseUrl}/mcp/`
  return resource.startsWith(prefix) ? resource.slice(prefix.length) : undefined
}

/** Whether a text is one of our resources, in the spelling of `resourceOf`. */
export function isResource(resource: string, baseUrl: string, catalog: Catalog): boolean {
  const slug = slugOf(resource, baseUrl)
  return resourceOf(resource, baseUrl) === resource && (slug === undefined || catalog.has(slug))
}

/**
 * What a 401 says of how to sign in (RFC 9728, 5.1): where the metadata of the resource is. For
 * requests of other routes nothing is added to the challenge.
 *
 * @param request `url` as it is routed; `originalUrl` as the client spells it, because the metadata
 *   have to name the very address that it uses (RFC 9728, 3.3)
 */
export function challengeFor(
  { url, originalUrl }: Pick<FastifyRequest, 'url' | 'originalUrl'>,
  challenge: string,
  baseUrl: string,
): string {
  const path = resourcePath(url)
  if (path === undefined) return challenge
  const { pathname, search } = new URL(originForm(originalUrl), 'http://gateway')
  const metadata = `${baseUrl}/.well-known/oauth-protected-resource${path === '' ? '' : pathname + search}`
  return `${challenge}, resource_metadata="${metadata}", scope="${CALL_SCOPE}"`
}

/**
 * Refuses an access token for `resource` if the resource of the request is another. Calls that a
 * tool makes in this process belong to the request that was checked.
 *
 * @throws GatewayError INVALID_TOKEN
 */
export function requireAudience(
  { resource }: { resource: string },
  request: Pick<FastifyRequest, 'url'>,
  baseUrl: string,
): void {
  if (isMadeByTool()) return
  const path = resourcePath(request.url)
  if (path !== undefined && resourceOf(resource, baseUrl) === `${baseUrl}${path}`) return
  throw new GatewayError('INVALID_TOKEN', {
    message: 'The access token is for another resource.',
    hint: `Ask for a token with resource=${baseUrl}${path ?? ''}`,
  })
}
