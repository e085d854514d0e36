/**
 * An upstream as the gateway knows it, whether a file in src/upstreams or a document of the
 * operator declares it. It consists of data and pure functions (parameters, request, mapping,
 * recorded example): no I/O, no environment, no clock. Files use the shorter form of
 * `upstream-file.ts`.
 */
import type { Endpoint } from './endpoint.ts'
import type { ResponseClass } from './response-class.ts'
import type { Terms } from './terms.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

export type Tier = 'developer' | 'pro' | 'business' | 'enterprise'

/** An upstream: identity, terms, address, caps, and its endpoints. */
export interface Upstream {
  displayName: string
  category: string
  description: string
  tags: string[]
  /** Everyday words that the search also finds. They are never shown. */
  keywords?: string[]
  /** The lowest tier that may call it. Operators can change it. */
  tierRequired: Tier
  terms: Terms
  /** Scheme, host and optional path prefix, without a slash at the end. */
  baseUrl: string
  /**
   * Request headers that are always sent, names in lower case. `accept` and `user-agent` have
   * defaults.
   */
  headers?: Record<string, string>
  credential?: Credential
  caps: Caps
  /**
   * Set if the source allows fewer requests, or none, to clients whose `User-Agent` does not say
   * how to reach their operator.
   */
  contact?: ContactRule
  /** Response headers in which the upstream says how many requests are left. */
  rateHeaders?: RateHeaders
  /** Longest time of one attempt, from connect to the last byte. Default: 10 000 ms. */
  attemptTimeoutMs?: number
  /**
   * Most redirects that are followed within the upstream's own origin. Each counts against the cap
   * as a request. Default: none.
   */
  redirectsMax?: number
  /** Largest decoded body accepted. Default: 2 MiB. */
  bodyBytesMax?: number
  probe: Probe
  /**
   * Undeclared parameters that callers may not send, because they would change authentication or
   * the form of the answer. Parameters that the request sets are always reserved.
   */
  reservedParameters?: string[]
  /**
   * Members of the data that are often null, because only some things have them. Members that are
   * null in a recorded answer need not be listed.
   */
  mayLack?: string[]
  /**
   * Called first for every answer, whatever its status. Returns what the answer means, or undefined
   * if its status decides.
   */
  classify?: (answer: UpstreamResponse) => ResponseClass | undefined
  /** Another source of the same data, which answers if this source fails. */
  fallback?: FallbackSource
  /** Set if the operator added the upstream by a document. */
  own?: OwnUpstream
  /** Keyed by endpoint path, `/current`. */
  endpoints: Record<string, Endpoint>
}

export interface OwnUpstream {
  /** A hash of the document. Processes with different hashes have read different documents. */
  digest: string
  /**
   * Whether the operator wrote the address into the settings of the document. Only then the address
   * may be private.
   */
  mayBePrivate: boolean
}

/**
 * Another source of an upstream's data, with its own address, terms and caps. Its endpoints have
 * the parameters, data and cache rules of the upstream's endpoints with the same path.
 */
export interface FallbackSource
  extends Pick<
    Upstream,
    'terms' | 'baseUrl' | 'headers' | 'caps' | 'attemptTimeoutMs' | 'bodyBytesMax' | 'probe' | 'classify'
  > {
  endpoints: Record<string, Pick<Endpoint, 'request' | 'isNotFound' | 'rejects' | 'classify' | 'map' | 'example'>>
}

/**
 * What the upstream allows one source address. The gateway never exceeds it in any rolling window.
 */
export interface Caps {
  /** Most requests in flight at once. */
  concurrency: number
  /** At most `max` requests in any window of `seconds`. */
  rates: { max: number; seconds: number }[]
}

/** What a source demands of clients that send no contact. */
export interface ContactRule {
  /** The rule, as a sentence. */
  rule: string
  /**
   * Caps of calls without a key while the operator has set no `CONTACT`. Absent: the caps of the
   * upstream.
   */
  capsWithout?: Caps
}

/** How a key is sent, and who may provide it. */
export interface Credential {
  /** Who provides the key: only the operator; the operator or a caller; or every caller. */
  accessMode: 'platform_managed' | 'byok_available' | 'byok_required'
  /**
   * Whether the upstream refuses calls without a key. If so, the API is enabled only with a key.
   */
  required: boolean
  in: 'query' | 'header'
  name: string
  /** Turns the key into the value that is sent, such as `Bearer …`. Default: the key itself. */
  format?: (key: string) => string
  /** Address for calls with a key, if it differs. */
  baseUrl?: string
  /**
   * Caps of each key, whether a caller's or the operator's, if they differ from the caps of the
   * address.
   */
  caps?: Caps
  /**
   * The cheapest request that checks a key. Absent: the probe's request. If it is not known that
   * the upstream refuses the request with each wrong key (`isConclusive`), a key counts as valid
   * only if the upstream refuses the same request with a made-up key.
   */
  check?: { request: UpstreamRequest; isConclusive: boolean }
}

export interface RateHeaders {
  remaining: string
  reset: string
  resetIs: 'epoch-seconds' | 'seconds'
  /**
   * For an upstream with several limits: a header that names the limit to which the other headers
   * belong, and the name of the limit that the gateway follows. If the header has another value,
   * the other headers are ignored. If the header is absent, they count.
   */
  appliesWhen?: { header: string; value: string }
}

/** The cheapest request that shows that the upstream works. */
export interface Probe {
  request: UpstreamRequest
  /** Seconds between scheduled probes. Longer if the upstream asks for few requests. */
  everySeconds: number
}
