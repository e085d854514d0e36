import project from '../../package.json' with { type: 'json' }
import { memoize } from '../../src/async/memoize.ts'
import type { Api } from '../../src/catalog/catalog.ts'
import { requestUrl } from '../../src/catalog/request-url.ts'
import type { UpstreamRequest, UpstreamResponse } from '../../src/catalog/upstream.ts'
import { ACCEPT_ENCODING } from './response-body.ts'

/** Its URL may hold a key: it is never logged. */
export interface WireRequest {
  url: URL
  headers: Record<string, string>
  /** The one it is sent with. */
  key: string | undefined
}

/** Sends our headers alone. @throws Error when the address would leave the upstream's base URL */
export function buildWireRequest(
  api: Api,
  request: UpstreamRequest,
  options: { extra: [string, string][]; key: string | undefined; contact: string },
): WireRequest {
  const { upstream } = api
  const url = requestUrl(api.baseUrl, request, options.extra)
  if (!isUnderBase(api, url)) throw new Error('the request leaves the base address of its upstream')
  const headers: Record<string, string> = {
    accept: 'application/json',
    'user-agent': `agent-api-gateway/${project.version} (+${options.contact})`,
    ...upstream.headers,
    ...request.headers,
    'accept-encoding': ACCEPT_ENCODING,
  }
  const { credential } = upstream
  if (credential && options.key !== undefined) {
    const value = credential.format?.(options.key) ?? options.key
    if (credential.in === 'query') url.searchParams.set(credential.name, value)
    else headers[credential.name.toLowerCase()] = value
  }
  return { url, headers, key: options.key }
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** Undefined where the redirect leaves the upstream's base address. */
export function redirectedRequest(
  api: Api,
  { url, headers, key }: WireRequest,
  answer: UpstreamResponse,
): WireRequest | undefined {
  const { location } = answer.headers
  if (!REDIRECTS.has(answer.status) || location === undefined || !URL.canParse(location, url.href)) return undefined
  const next = new URL(location, url.href)
  return isUnderBase(api, next) ? { url: next, headers, key } : undefined
}

const parseBase = memoize(
  (baseUrl: string) => baseUrl,
  (baseUrl) => new URL(baseUrl),
)

function isUnderBase({ baseUrl }: Api, url: URL): boolean {
  const base = parseBase(baseUrl)
  return url.origin === base.origin && url.pathname.startsWith(base.pathname === '/' ? '/' : `${base.pathname}/`)
}
