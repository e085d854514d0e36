import { LRUCache } from 'lru-cache'
import { fetch as guardedFetch, type HeadersInit } from 'undici'
import { openHttpClient } from '../net/http-client.ts'

/**
 * Documents that a node fetches at once; of one client address, one. Further requests are refused.
 */
const FETCHES_MAX = 2

/** Longest until there is a connection, and until the whole document is read. Milliseconds. */
const CONNECT_MS_MAX = 1_000
const DOCUMENT_MS_MAX = 2_500

/** How long a host that could not be reached is not tried again, milliseconds. */
const UNREACHED_MS = 60_000

/** Hosts that are remembered so; of more, the oldest are tried again. */
const UNREACHED_MAX = 1_000

/** What fetches the documents that describe applications. Strangers choose the addresses. */
export interface DocumentFetches {
  /**
   * Takes one of the few places for a request that may fetch a document. A request for a document
   * that is being fetched shares the fetch and takes none.
   *
   * @returns what the request calls when it ends; undefined if it may not fetch now
   */
  begin: (url: string, client: string) => (() => void) | undefined
  fetch: typeof fetch
}

/**
 * Fetches a client's metadata document as all egress is made: to public addresses alone, checked
 * after the name is resolved, without redirects. Each document has a connection of its own, which
 * ends with it.
 */
export function openMetadataFetch(): DocumentFetches {
  const clients = new Map<string, string>()
  const unreached = new LRUCache<string, true>({ max: UNREACHED_MAX, ttl: UNREACHED_MS })
  const fetchDocument = async (address: unknown, options: { signal?: AbortSignal; headers?: HeadersInit } = {}) => {
    const dispatcher = openHttpClient({ connections: 1, allowPrivate: false, connectTimeoutMs: CONNECT_MS_MAX })
    const deadline = AbortSignal.timeout(DOCUMENT_MS_MAX)
    try {
      const answer = await guardedFetch(String(address), {
        headers: Object.fromEntries(new Headers(options.headers as Record<string, string>)),
        signal: options.signal ? AbortSignal.any([options.signal, deadline]) : deadline,
        redirect: 'manual',
        dispatcher,
      })
      // When the body has been read, or has failed.
      void dispatcher.close()
      return answer as unknown as Response
    } catch (error) {
      void dispatcher.destroy()
      // A host that is slow to answer one address may be an honest host.
      if (!deadline.aborted && !options.signal?.aborted) unreached.set(new URL(String(address)).host, true)
      throw error
    }
  }
  return {
    begin: (url, client) => {
      if (clients.has(url)) return () => undefined
      const isFull = clients.size >= FETCHES_MAX || [...clients.values()].includes(client)
      if (isFull || unreached.has(URL.parse(url)?.host ?? '')) return undefined
      clients.set(url, client)
      return () => void clients.delete(url)
    },
    fetch: fetchDocument as typeof fetch,
  }
}
