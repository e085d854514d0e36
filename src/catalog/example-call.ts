import type { ApiEndpoint } from './api-endpoint.ts'
import type { Api } from './catalog.ts'

/**
 * A call that works as it stands, from the recorded example:
 * `/v1/call/weather/current?latitude=40.71&…`. A POST has its parameters in its body.
 */
export function exampleCall(slug: string, apiEndpoint: ApiEndpoint): string {
  const { path, method, declaration } = apiEndpoint
  const query = method === 'POST' ? '' : queryOf(declaration.example.parameters)
  return `/v1/call/${slug}${path}${query === '' ? '' : `?${query}`}`
}

/**
 * What a newcomer calls first: the weather, which everybody understands, else the first endpoint
 * that takes a GET. Undefined if the gateway serves no such endpoint.
 */
export function newcomersCall(apis: Iterable<Api>): { api: Api; endpoint: ApiEndpoint } | undefined {
  const all = [...apis].sort((one, other) => Number(other.slug === 'weather') - Number(one.slug === 'weather'))
  for (const api of all) {
    const endpoint = [...api.endpoints.values()].find(({ method }) => method === 'GET')
    if (endpoint) return { api, endpoint }
  }
  return undefined
}

/** Parameters as a query, in which a list is its items one after another. */
export function queryOf(parameters: Record<string, unknown>): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, String(item)]),
  )
  return new URLSearchParams(pairs).toString()
}
