import type { UpstreamRequest } from './upstream.ts'

/**
 * The address of a request to an upstream: its own query first, then the caller's undeclared parameters in their order.
 * The upstream's key is not part of it.
 */
export function requestUrl(baseUrl: string, request: UpstreamRequest, extra: [name: string, value: string][]): URL {
  const url = new URL(baseUrl + request.path)
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined) url.searchParams.append(name, typeof value === 'number' ? decimal(value) : value)
  }
  for (const [name, value] of extra) url.searchParams.append(name, value)
  return url
}

/** A number without an exponent, which not every upstream reads: 5e-7 is 0.0000005. */
function decimal(value: number): string {
  const text = String(value)
  if (!text.includes('e')) return text
  return text.includes('e-') ? value.toFixed(20).replace(/\.?0+$/, '') : BigInt(value).toString()
}
