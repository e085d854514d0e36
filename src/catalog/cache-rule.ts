import type { CallContext } from './endpoint.ts'
import type { UpstreamRequest } from './upstream-request.ts'

/** How long answers of an endpoint are stored, and which calls share them. */
export interface CacheRule<Parameters> {
  /**
   * Seconds for which an answer is fresh. A function if this depends on the call or its data. 0: do
   * not store.
   */
  seconds: number | ((parameters: Parameters, data: Record<string, unknown>, context: CallContext) => number)
  /** Seconds after freshness in which the stored answer is served while it is refreshed. */
  staleWhileRevalidateSeconds?: number
  /**
   * Seconds after freshness in which the stored answer is served if the upstream fails or its cap
   * is used up.
   */
  staleIfErrorSeconds?: number
  /** Whether an answer belongs to its caller and is never served to others. Default: false. */
  perCaller?: boolean
  /** Seconds for which a "not found" of the upstream is stored. Default: 0. */
  notFoundSeconds?: number
  /**
   * The parameters from which the key of the stored answer is made, for example with rounded
   * coordinates. Default: all parameters, unchanged. The stored value is the mapped data, so calls
   * with different data must have different keys. Undeclared parameters are always part of the key.
   */
  key?: (parameters: Parameters) => Record<string, unknown>
}

/** Fetches many items with one request and serves several calls from them. */
export interface PrefetchRule<Parameters> {
  /** Calls with equal keys share a pool of items. */
  key: (parameters: Parameters) => string
  /** The request that fills the pool. */
  request: (parameters: Parameters) => UpstreamRequest
  /**
   * The items of the answer that fills the pool. Undefined if it has none: the endpoint's plain
   * request is then made.
   */
  items: (body: unknown) => unknown[] | undefined
  /** How many items this call takes. */
  take: (parameters: Parameters) => number
  /** A body as the upstream would have sent it for these items alone. */
  body: (items: unknown[]) => unknown
  /** Seconds for which a pool is kept. */
  seconds: number
  /**
   * Seconds for which the gateway remembers that the filter of a call has too few items for a pool.
   * Calls then use the plain request at once.
   */
  tooFewItemsSeconds?: number
}
