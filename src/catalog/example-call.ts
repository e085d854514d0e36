import type { ApiEndpoint } from './api-endpoint.ts'
import type { Api } from './catalog.ts'

/**
 * A working example call, made from the recorded example:
 * `/v1/call/weather/current?latitude=40.71&…`. A POST has its parameters in its body.
 */
export function exampleCall(slug: string, apiEndpoint: ApiEndpoint): string {
  const { path, method, declaration } = apiEndpoint
  const query = method === 'POST' ? '' : queryOf(declaration.example.parameters)
  return `/v1/call/${slug}${path}${query === '' ? '' : `?${query}`}`
}

/**
 * The first example for newcomers: the weather, or else the first endpoint that accepts a GET.
 * Undefined if the gateway has no such endpoint.
 */
export function firstExampleCall(apis: Iterable<Api>): { api: Api; endpoint: ApiEndpoint } | undefined {
  const all = [...apis].sort((one, other) => Number(other.slug === 'weather') - Number(one.slug === 'weather'))
  for (const api of all) {
    const endpoint = [...api.endpoints.values()].find(({ method }) => method === 'GET')
    if (endpoint) return { api, endpoint }
  }
  return undefined
}

/** Writes parameters as a query. A list becomes one pair for each item. */
export function queryOf(parameters: Record<string, unknown>): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, String(item)]),
  )
  return new URLSearchParams(pairs).toString()
}
