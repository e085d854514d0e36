import { LRUCache } from 'lru-cache'
import { fetch as guardedFetch, type HeadersInit } from 'undici'
import { openHttpClient } from '../net/http-client.ts'

/**
 * Documents that a node fetches at once. A client address may fetch one at a time. Further requests
 * are refused. A fetch takes no thread and 5 KiB at most, so there are enough places for honest
 * applications while a few addresses fetch slow documents all the time.
 */
const FETCHES_MAX = 16

/** Longest wait for a connection, and until the whole document is read. Milliseconds. */
const CONNECT_MS_MAX = 1_000
const DOCUMENT_MS_MAX = 2_500

/** How long no further request goes to a host that could not be reached, milliseconds. */
const UNREACHED_MS = 60_000

/**
 * Unreachable hosts that are remembered. Beyond this number the oldest are forgotten and tried
 * again.
 */
const UNREACHED_MAX = 1_000

/** Fetches the metadata documents of applications. Strangers choose the addresses. */
export interface DocumentFetches {
  /**
   * Takes one of the places for a request that may fetch a document. If the document is being
   * fetched already, the request shares the fetch and takes no place.
   *
   * @returns a function that the request calls when it ends; undefined if it may not fetch now
   */
  begin: (url: string, client: string) => (() => void) | undefined
  fetch: typeof fetch
}

/**
 * Fetches a client's metadata document under the rules of all outgoing requests: public addresses
 * only, checked after the name is resolved, without redirects. Each document has its own
 * connection, which closes afterwards.
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
      // Waits until the body has been read or has failed.
      void dispatcher.close()
      return answer as unknown as Response
    } catch (error) {
      void dispatcher.destroy()
      // If a deadline passed, the host may be honest and only slow to answer this address, so it is
      // not remembered as unreachable.
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
