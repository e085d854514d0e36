import type { ApiEndpoint } from './catalog.ts'

/** A call that works as it stands, from the recorded example: `/v1/call/weather/current?latitude=40.71&…`. */
export function exampleCall(slug: string, { path, endpoint }: ApiEndpoint): string {
  const query = new URLSearchParams(
    Object.entries(endpoint.example.parameters).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
  return `/v1/call/${slug}${path}${query === '' ? '' : `?${query}`}`
}
