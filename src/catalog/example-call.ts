import { type ApiEndpoint, callMethod } from './api-endpoint.ts'

/**
 * A call that works as it stands, from the recorded example:
 * `/v1/call/weather/current?latitude=40.71&…`. A POST has its parameters in its body.
 */
export function exampleCall(slug: string, apiEndpoint: ApiEndpoint): string {
  const { path, declaration: endpoint } = apiEndpoint
  const query = callMethod(endpoint) === 'POST' ? '' : queryOf(endpoint.example.parameters)
  return `/v1/call/${slug}${path}${query === '' ? '' : `?${query}`}`
}

/** Parameters as a query, in which a list is its items one after another. */
export function queryOf(parameters: Record<string, unknown>): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    [value].flat().map((item): [string, string] => [name, String(item)]),
  )
  return new URLSearchParams(pairs).toString()
}
