/**
 * An upstream as the gateway knows it, whether a file in src/upstreams or a document declares it.
 * It is data and pure functions (parameters, request, mapping, recorded example): no I/O, no
 * environment, no clock. `upstream-file.ts` has what a file says in a shorter form.
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
  /** Everyday words by which search finds it as well; never shown. */
  keywords?: string[]
  /** Lowest tier that may call it; operators can change it. */
  tierRequired: Tier
  terms: Terms
  /** Scheme, host and optional path prefix, without a slash at the end. */
  baseUrl: string
  /** Fixed request headers, lower-case names. `accept` and `user-agent` have good defaults. */
  headers?: Record<string, string>
  credential?: Credential
  caps: Caps
  /**
   * Set if the source allows less, or nothing, to clients that do not say in the `User-Agent` how
   * to reach them.
   */
  contact?: ContactRule
  /** Response headers that tell what the upstream's own limiter has left. */
  rateHeaders?: RateHeaders
  /** Longest one attempt may take, from connect to the last byte. Default: 10 000 ms. */
  attemptTimeoutMs?: number
  /**
   * Redirects followed within the upstream's own origin, each paid for as a request. Default: none.
   */
  redirectsMax?: number
  /** Largest decoded body accepted. Default: 2 MiB. */
  bodyBytesMax?: number
  probe: Probe
  /**
   * Names a caller may not send besides those the request itself sets: they would change auth or
   * the answer's shape.
   */
  reservedParameters?: string[]
  /**
   * Members of the data that only some things have, or have at times, besides members that are null
   * in a recorded answer.
   */
  mayLack?: string[]
  /**
   * Sees every answer first, whatever its status; says what it means, or nothing to leave it to the
   * status.
   */
  classify?: (answer: UpstreamResponse) => ResponseClass | undefined
  /** Another source of the same data, which answers if this source fails. */
  fallback?: FallbackSource
  /**
   * Of an upstream that the operator added by a document; absent for the upstreams of this project.
   */
  own?: OwnUpstream
  /** Keyed by endpoint path, `/current`. */
  endpoints: Record<string, Endpoint>
}

export interface OwnUpstream {
  /** Names what was read: processes that differ in it read different documents. */
  digest: string
  /**
   * The operator wrote the address into the settings of the document. Only then it may be private.
   */
  mayBePrivate: boolean
}

/**
 * Another source of an upstream's data, with an address, terms and caps of its own. Parameters,
 * data and lifetimes of its endpoints are the upstream's endpoints of the same path.
 */
export interface FallbackSource
  extends Pick<
    Upstream,
    'terms' | 'baseUrl' | 'headers' | 'caps' | 'attemptTimeoutMs' | 'bodyBytesMax' | 'probe' | 'classify'
  > {
  endpoints: Record<string, Pick<Endpoint, 'request' | 'isNotFound' | 'rejects' | 'classify' | 'map' | 'example'>>
}

/** What the upstream allows one source address; never exceeded in any rolling window. */
export interface Caps {
  /** Requests under way at once. */
  concurrency: number
  /** At most `max` requests in any `seconds`. */
  rates: { max: number; seconds: number }[]
}

/** What a source asks of the operator's `CONTACT`. */
export interface ContactRule {
  /** The rule, as a sentence. */
  rule: string
  /**
   * Caps of calls without a key while the operator names no contact. Absent: the caps of the
   * upstream.
   */
  capsWithout?: Caps
}

/** How a key is sent, and who may bring one. */
export interface Credential {
  /** Who supplies the key: only the operator; the operator or a caller; every caller. */
  accessMode: 'platform_managed' | 'byok_available' | 'byok_required'
  /** Whether the upstream refuses calls without a key. Such an API is enabled only with a key. */
  required: boolean
  in: 'query' | 'header'
  name: string
  /** Turns the key into the value sent, `Bearer …`. Default: the key itself. */
  format?: (key: string) => string
  /** Host that serves calls with a key, if it is another host. */
  baseUrl?: string
  /** Caps of a caller's or operator's key, if they differ from the caps of the address. */
  caps?: Caps
  /**
   * The cheapest request that the upstream refuses with a wrong key. Absent: none is known, so that
   * a key is checked by the probe's request, and counts as valid only if the same request with a
   * made-up key is refused.
   */
  check?: UpstreamRequest
}

export interface RateHeaders {
  remaining: string
  reset: string
  resetIs: 'epoch-seconds' | 'seconds'
  /**
   * For an upstream with several limits: the header that names the limit these headers are about,
   * and its value for ours. If it names another, they are left aside; if it is not sent, they
   * count.
   */
  appliesWhen?: { header: string; value: string }
}

/** The cheapest request that shows the upstream is alive. */
export interface Probe {
  request: UpstreamRequest
  /** Seconds between scheduled probes; rare if the upstream asks for it. */
  everySeconds: number
}
