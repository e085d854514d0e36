import { loadUpstreams } from '../../src/catalog/catalog.ts'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import type { Target } from './scenario.ts'

/** The requests of a load generator, and which answers are right. */
export interface TargetRequest {
  /**
   * Used in turn. `{n}` counts up. `{lat}` and `{lon}` are the grid cell of a request; no two
   * requests have the same cell.
   */
  urls: string[]
  headers: Record<string, string>
  /** Status of a right answer. If an answer has another status, the run has a failure. */
  status: number
}

/** The credentials that the gateway's targets need. */
export interface Keys {
  live: string
  test: string
  /** The key of an account whose limit of calls a minute is used up. */
  limited: string
  /** A well-formed key that nobody has. */
  unknown: string
}

const PLAIN = '/v1/call/random-facts/random'

/** The gateway's requests for a target. */
export async function gatewayRequest(target: Target, bases: string[], keys: Keys): Promise<TargetRequest> {
  const at = (paths: string[]): string[] => paths.flatMap((path) => bases.map((base) => base + path))
  const request = (paths: string[], key: string, status = 200): TargetRequest => ({
    urls: at(paths),
    headers: { 'x-api-key': key },
    status,
  })
  switch (target) {
    case 'hit':
      return request(['/v1/call/random-facts/today'], keys.live)
    case 'miss':
      return request(['/v1/call/weather/current?latitude={lat}&longitude={lon}'], keys.live)
    case 'test-key':
      return request([PLAIN], keys.test)
    case 'spread':
      return request(await spreadPaths(), keys.live)
    case 'spread-hit':
      return request(await storedPaths(), keys.live)
    case 'unknown-key':
      return request([PLAIN], keys.unknown, 401)
    case 'tier':
      return request(['/v1/call/news/top'], keys.live, 402)
    case 'limited':
      return request([PLAIN], keys.limited, 429)
    default:
      return request([PLAIN], keys.live)
  }
}

/** The requests for a peer. The peers know only a single path and three keys. */
export function peerRequest(
  target: Target,
  base: string,
  keys: Pick<Keys, 'live' | 'limited' | 'unknown'>,
): TargetRequest {
  const request = (key: string, status: number): TargetRequest => ({
    urls: [`${base}/random`],
    headers: { 'x-api-key': key },
    status,
  })
  if (target === 'unknown-key' || target === 'tier') return request(keys.unknown, 401)
  return target === 'limited' ? request(keys.limited, 429) : request(keys.live, 200)
}

/** The slugs that `spread` calls: all APIs that a new account may call. */
export async function spreadSlugs(): Promise<string[]> {
  return [...(await loadUpstreams())]
    .filter(([slug, it]) => slug !== 'news' && firstSingleEndpoint(it))
    .map(([slug]) => slug)
}

/** An endpoint of every upstream, with a parameter that keeps its answer out of the cache. */
async function spreadPaths(): Promise<string[]> {
  const examples = await examplePaths()
  return examples.map(({ path }) => `${path}${path.includes('?') ? '&' : '?'}bench={n}`)
}

/** An endpoint of every upstream whose answers are stored. */
export async function storedPaths(): Promise<string[]> {
  const examples = await examplePaths()
  return examples.flatMap(({ path, endpoint }) => (endpoint.cache ? [path] : []))
}

async function examplePaths(): Promise<{ path: string; endpoint: Endpoint }[]> {
  const upstreams = await loadUpstreams()
  return (await spreadSlugs()).flatMap((slug) => {
    const upstream = upstreams.get(slug)
    const first = upstream && firstSingleEndpoint(upstream)
    if (!first) return []
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(first.endpoint.example.parameters)) query.set(name, String(value))
    return [{ path: `/v1/call/${slug}${first.path}${query.size > 0 ? `?${query}` : ''}`, endpoint: first.endpoint }]
  })
}

/**
 * The first endpoint of an upstream that makes a single request, so that its recorded answer is a
 * single body.
 */
export function firstSingleEndpoint(upstream: Upstream): { path: string; endpoint: Endpoint } | undefined {
  for (const [path, endpoint] of Object.entries(upstream.endpoints)) {
    const { parameters, now } = endpoint.example
    const context = { now: now === undefined ? Date.now() : Date.parse(now), callerAddress: () => '203.0.113.7' }
    if ([endpoint.request(parameters, context)].flat().length === 1) return { path, endpoint }
  }
  return undefined
}

/** Fills a URL for the n-th request of a run. */
export function fillUrl(url: string, n: number): string {
  const { lat, lon } = cellOf(n)
  return url.replace('{n}', String(n)).replace('{lat}', lat).replace('{lon}', lon)
}

function cellOf(n: number): { lat: string; lon: string } {
  return { lat: ((n % 17_000) / 100 - 85).toFixed(2), lon: (Math.floor(n / 17_000) / 100 - 170).toFixed(2) }
}

/** Writes a script for wrk, in Lua, that fills the URLs in the same way. */
export function wrkScript(urls: string[], headers: Record<string, string>, firstNumber: number): string {
  const paths = urls.map((url) => `'${new URL(url.replaceAll(/[{}]/g, '_')).pathname}${queryOf(url)}'`)
  const named = Object.entries(headers).map(([name, value]) => `wrk.headers['${name}'] = '${value}'`)
  return `${named.join('\n')}
local paths = { ${paths.join(', ')} }
local n = ${firstNumber}
request = function()
  n = n + 1
  local path = paths[n % #paths + 1]
  path = path:gsub('{n}', n):gsub('{lat}', string.format('%.2f', (n % 17000) / 100 - 85))
  return wrk.format('GET', (path:gsub('{lon}', string.format('%.2f', math.floor(n / 17000) / 100 - 170))))
end
`
}

function queryOf(url: string): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark)
}
