import { fetch as guardedFetch, type HeadersInit } from 'undici'
import { openHttpClient } from '../http/http-client.ts'

/** Connections to the hosts of applications at once. */
const CONNECTIONS = 4

/**
 * Fetches a client's metadata document as all egress is made: to public addresses alone, checked after the name is
 * resolved, without redirects, within three seconds.
 */
export function openMetadataFetch(): { fetch: typeof fetch; close: () => Promise<void> } {
  const dispatcher = openHttpClient({ connections: CONNECTIONS, allowPrivate: false })
  const fetchDocument = async (address: unknown, options: { signal?: AbortSignal; headers?: HeadersInit } = {}) => {
    const answer = await guardedFetch(String(address), {
      headers: Object.fromEntries(new Headers(options.headers as Record<string, string>)),
      signal: options.signal ?? AbortSignal.timeout(FETCH_MS_MAX),
      redirect: 'manual',
      dispatcher,
    })
    return answer as unknown as Response
  }
  return { fetch: fetchDocument as typeof fetch, close: () => dispatcher.close() }
}

const FETCH_MS_MAX = 3_000
