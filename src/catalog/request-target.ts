import { memoize } from '../async/memoize.ts'
import type { JoinedList, UpstreamRequest } from './upstream-request.ts'

/** Where a request to an upstream goes. */
export interface RequestTarget {
  origin: string
  /** Path and query, as the request line has them (origin-form, RFC 9112, 3.2.1). */
  path: string
}

/**
 * A path that the URL parser would not change: it has no character that the parser encodes, and no
 * segment that begins with a dot.
 */
const PLAIN_PATH = /^(?:\/(?!\.|%2e)[\w.~!$&'()*+,;=:@%-]*)+$/i

/**
 * The target of a request. Its query has the endpoint's own parameters first, then the caller's
 * undeclared parameters in their order, but not the upstream's key.
 */
export function requestTarget(
  baseUrl: string,
  request: UpstreamRequest,
  extra: [name: string, value: string][],
): RequestTarget {
  const parameters: [name: string, value: string | JoinedList][] = [...parametersOf(request), ...extra]
  // Nearly all paths are plain, and then no URL object is needed, which would cost more than all
  // other work here.
  if (PLAIN_PATH.test(request.path)) {
    const { origin, prefix } = baseOf(baseUrl)
    const path = prefix + request.path
    const query = parameters.map(pairOf).join('&')
    return { origin, path: query === '' ? path : `${path}?${query}` }
  }
  const url = new URL(baseUrl + request.path)
  const lists: string[] = []
  for (const [name, value] of parameters) {
    if (typeof value === 'string') url.searchParams.append(name, value)
    else lists.push(pairOf([name, value]))
  }
  // Only now, because `searchParams` would encode the separators of lists.
  if (lists.length > 0) url.search = [url.search, ...lists].filter(Boolean).join('&')
  return { origin: url.origin, path: url.pathname + url.search }
}

function pairOf([name, value]: [string, string | JoinedList]): string {
  const text = typeof value === 'string' ? formEncoded(value) : value.items.map(formEncoded).join(value.separator)
  return `${formEncoded(name)}=${text}`
}

const PLAIN_VALUE = /^[\w.*-]*$/

/** Encodes a text for a query. Most texts need no encoding, and `URLSearchParams` is slower. */
function formEncoded(text: string): string {
  return PLAIN_VALUE.test(text) ? text : new URLSearchParams([['', text]]).toString().slice('='.length)
}

/** Whether a path that was built for an upstream stays below its base address. */
export function isUnderBase(baseUrl: string, { origin, path }: RequestTarget): boolean {
  const base = baseOf(baseUrl)
  return origin === base.origin && path.startsWith(`${base.prefix}/`)
}

const baseOf = memoize(
  (baseUrl: string) => baseUrl,
  (baseUrl) => {
    const { origin, pathname } = new URL(`${baseUrl}/`)
    return { origin, prefix: pathname.slice(0, -1) }
  },
)

function parametersOf({ query = {} }: UpstreamRequest): [name: string, value: string | JoinedList][] {
  return Object.entries(query).flatMap(([name, value]): [string, string | JoinedList][] => {
    if (typeof value === 'object') return 'items' in value ? [[name, value]] : value.map((item) => [name, item])
    return value === undefined ? [] : [[name, typeof value === 'number' ? decimal(value) : value]]
  })
}

/** Writes a number without an exponent, because some upstreams cannot read 5e-7. */
export function decimal(value: number): string {
  const text = String(value)
  if (!text.includes('e')) return text
  const [, sign, first, others = '', exponent] = /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/.exec(text) ?? []
  if (first === undefined) return BigInt(value).toString()
  return `${sign}0.${'0'.repeat(Number(exponent) - 1)}${first}${others}`
}
