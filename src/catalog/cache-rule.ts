import type { CallContext } from './endpoint.ts'
import type { UpstreamRequest } from './upstream-request.ts'

/** How long answers of an endpoint are stored, and which calls share them. */
export interface CacheRule<Parameters> {
  /** Seconds an answer is fresh, of the call and its data if that differs; 0: do not store it. */
  seconds: number | ((parameters: Parameters, data: Record<string, unknown>, context: CallContext) => number)
  /** Seconds after that in which it is served while it is refreshed. */
  staleWhileRevalidateSeconds?: number
  /**
   * Seconds after freshness in which it is served when the upstream fails or its cap is used up.
   */
  staleIfErrorSeconds?: number
  /** Answers are a caller's own and never shared with another. Default: false. */
  perCaller?: boolean
  /** Seconds a definite "no such thing" is kept. Default: 0. */
  notFoundSeconds?: number
  /**
   * Parameters as the key sees them (coordinates rounded, say). Default: as they are. Mapped data
   * are stored: calls whose data differ must have different keys. Undeclared parameters are always
   * part of the key.
   */
  key?: (parameters: Parameters) => Record<string, unknown>
}

/** How one request brings the answers of several calls. */
export interface PrefetchRule<Parameters> {
  /** Calls with equal keys draw from one pool. */
  key: (parameters: Parameters) => string
  /** The request that fills it. */
  request: (parameters: Parameters) => UpstreamRequest
  /**
   * The items of a filling answer; undefined if it has none, and then the endpoint's plain
   * request is made.
   */
  items: (body: unknown) => unknown[] | undefined
  /** How many items this call takes. */
  take: (parameters: Parameters) => number
  /** A body as the upstream would have sent it with just these items. */
  body: (items: unknown[]) => unknown
  /** Seconds a pool is kept. */
  seconds: number
  /**
   * Seconds for which it is remembered that a filter has too few items to fill a pool: no request
   * is spent on trying.
   */
  unfillableSeconds?: number
}
