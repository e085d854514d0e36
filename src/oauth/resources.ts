import type { FastifyRequest } from 'fastify'
import type { Catalog } from '../catalog/catalog.ts'
import { GatewayError } from '../errors.ts'
import { isMadeByTool } from '../http/request/caller-socket.ts'

/** The only scope of access tokens. */
export const CALL_SCOPE = 'call'

const CALLS = /^\/v1\/(?:call\/|calls\/|catalog(?:[/?]|$)|batch(?:[?]|$))/
const MCP = /^\/mcp(?:\/[^/]+)?(?=\/?$)/

/** Every request is tested with it. Only few addresses then need to be parsed. */
const MAY_BE_MCP = /^\/mcp|^[^?]*(?:%|\/\.)/

/**
 * The address of MCP that a request means, in the spelling that the router knows. Dot segments,
 * percent-encoded letters and a slash at the end do not make another address (RFC 3986, 6.2). The
 * query stays as it is.
 *
 * @returns undefined if the address is not an address of MCP
 */
export function mcpAddress(target: string): string | undefined {
  if (!MAY_BE_MCP.test(target)) return undefined
  const path = mcpPath(normalPath(URL.parse(`http://gateway${target}`)))
  return path === undefined ? undefined : path + queryOf(target)
}

/**
 * Path and query of a request's address. If the address has the absolute form (RFC 9112, 3.2.2),
 * its host is ignored.
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
 * The path of an address. The URL parser has resolved dot segments. Unreserved letters need no
 * percent-encoding (RFC 3986, 6.2.2.2).
 */
function normalPath(address: URL | null): string | undefined {
  return address?.pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => {
    const letter = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return /[\w.~-]/.test(letter) ? letter : encoded
  })
}

/**
 * The path of the resource that a request is for: `/mcp`, `/mcp/weather`, or empty for the call
 * routes. Undefined for all other routes.
 */
function resourcePath(url: string): string | undefined {
  if (CALLS.test(url)) return ''
  return mcpAddress(url)?.replace(/[?].*/s, '')
}

/**
 * The resource that an address means. Every spelling under which the MCP routes serve a client
 * means the same resource; so does the base address with or without a slash. Scheme and host are
 * compared as RFC 3986, 6.2 says. A query such as `?apis=` chooses tools and does not make another
 * resource.
 *
 * @returns undefined for an address that is not a resource, or that has a part which no resource
 *   may have (RFC 8707, 2: no fragment)
 */
export function resourceOf(address: string, baseUrl: string): string | undefined {
  // The URL parser accepts white space and backslashes, which are not allowed in an address.
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
 * The part of a 401's challenge that says how to sign in (RFC 9728, 5.1): the address of the
 * resource's metadata. Empty for requests of other routes.
 *
 * @param request `url` is the routed address; `originalUrl` is the address as the client spells it,
 *   which the metadata must repeat exactly (RFC 9728, 3.3)
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
 * Refuses an access token if it is for another resource than the request. Calls that a tool makes
 * inside this process belong to the request that was checked.
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
    hint: `Request a token with resource=${baseUrl}${path ?? ''}`,
  })
}
