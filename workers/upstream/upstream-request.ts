import project from '../../package.json' with { type: 'json' }
import type { Api } from '../../src/catalog/catalog.ts'
import { isUnderBase, type RequestTarget, requestTarget } from '../../src/catalog/request-target.ts'
import type { UpstreamRequest, UpstreamResponse } from '../../src/catalog/upstream-request.ts'
import { ACCEPT_ENCODING } from './response-body.ts'

/** The path may contain a key, so it is never logged. */
export interface WireRequest extends RequestTarget, Pick<UpstreamRequest, 'method' | 'body'> {
  headers: Record<string, string>
  /** The key with which it is sent. */
  key: string | undefined
}

/**
 * Sends our headers alone.
 * @throws Error if the address would leave the upstream's base URL
 */
export function buildWireRequest(
  api: Api,
  request: UpstreamRequest,
  options: { extra: [string, string][]; key: string | undefined; contact: string },
): WireRequest {
  const { upstream } = api
  const target = requestTarget(api.baseUrl, request, options.extra)
  if (!isUnderBase(api.baseUrl, target)) throw new Error('the request leaves the base address of its upstream')
  const headers: Record<string, string> = {
    accept: 'application/json',
    'user-agent': `agent-api-gateway/${project.version} (+${options.contact})`,
    ...upstream.headers,
    ...request.headers,
    'accept-encoding': ACCEPT_ENCODING,
  }
  const { key } = options
  const { credential } = upstream
  const { method, body } = request
  const written = { headers, key, ...(method && { method }), ...(body !== undefined && { body }) }
  if (!credential || key === undefined) return { ...target, ...written }
  const value = credential.format?.(key) ?? key
  if (credential.in === 'query') return { ...withParameter(target, credential.name, value), ...written }
  headers[credential.name.toLowerCase()] = value
  return { ...target, ...written }
}

/** Adds the key. No other parameter has its name, because neither files nor callers may set it. */
function withParameter({ origin, path }: RequestTarget, name: string, value: string): RequestTarget {
  return { origin, path: `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams([[name, value]])}` }
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** Undefined if the redirect leaves the upstream's base address. */
export function redirectedRequest(
  api: Api,
  { origin, path, headers, key }: WireRequest,
  answer: UpstreamResponse,
): WireRequest | undefined {
  const { location } = answer.headers
  const from = origin + path
  if (!REDIRECTS.has(answer.status) || location === undefined || !URL.canParse(location, from)) return undefined
  const to = new URL(location, from)
  const target = { origin: to.origin, path: to.pathname + to.search }
  return isUnderBase(api.baseUrl, target) ? { ...target, headers, key } : undefined
}
