import type { Static, TObject } from 'typebox'
import type { CacheRule, PrefetchRule } from './cache-rule.ts'
import type { ResponseClass } from './response-class.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

/** What a pure function may know of the call besides its parameters. */
export interface CallContext {
  /** Now, milliseconds since the epoch. */
  now: number
  /**
   * Address the call came from, behind trusted proxies; known to `complete` alone, for it is not
   * sent on. A function, because few endpoints need it, and reading the headers of proxies costs
   * time.
   */
  callerAddress?: () => string
}

/**
 * `read` changes nothing. `repeatable` changes something, and the same request again does no harm.
 * `once` is never sent a second time after its first byte was written. Only answers to reads are
 * stored or shared.
 */
export type Effect = 'read' | 'repeatable' | 'once'

export interface Endpoint<Parameters extends TObject = TObject, Data extends TObject = TObject> {
  description: string
  /**
   * Declared parameters: types, bounds, enums, patterns, defaults, descriptions. They are plain
   * scalars, or lists of plain scalars. The parameter `body` holds the JSON of a request's body.
   */
  parameters: Parameters
  /**
   * Further names that callers may use for a declared parameter: names by which other APIs of the
   * catalog know the same thing. The upstream only ever gets the declared name.
   */
  aliases?: { [Name in Extract<keyof Static<Parameters>, string>]?: readonly string[] }
  /**
   * The `data` of a success. Members of the spec are always present, nullable if the upstream may
   * have none.
   */
  data: Data
  /** What a request does. Default: read. */
  effect?: Effect
  /**
   * Of a write: whether it may remove or overwrite something. The tool's hints say so, and models
   * ask their users.
   */
  isDestructive?: boolean
  /**
   * Header with the id of the call, the same in every attempt: the upstream takes a second request
   * with it for the first.
   */
  idempotencyHeader?: string
  /** Largest body of a request, bytes of its JSON; undefined for an endpoint that takes none. */
  bodyBytesMax?: number
  /**
   * Data that do not fit their schema go out all the same: whoever wrote the document may be wrong
   * about the answers.
   */
  isLenient?: boolean
  /** Lifetimes of a stored answer; without it every call reaches the upstream. */
  cache?: CacheRule<Static<Parameters>>
  /**
   * Answers drawn from one larger upstream answer, for upstreams that allow few requests and whose
   * answers hold many items.
   */
  pool?: PrefetchRule<Static<Parameters>>
  /** Statuses besides 2xx with a JSON body that `map` reads, such as 204 for an empty list. */
  acceptStatuses?: number[]
  /**
   * Completes checked parameters before anything is spent: normalizes each of them, and fills in
   * what depends on the caller, the day or another parameter. Throws InvalidParameter for what a
   * schema cannot say.
   */
  complete?: (parameters: Static<Parameters>, context: CallContext) => Static<Parameters>
  /** The request, or several if one call needs them; each pays from the cap. */
  request: (parameters: Static<Parameters>, context: CallContext) => UpstreamRequest | UpstreamRequest[]
  /**
   * Whether a 404 or 410 has this upstream's form of "no such thing". Any other is a failure: the
   * route has moved.
   */
  isNotFound?: (answer: UpstreamResponse) => boolean
  /**
   * Statuses by which the upstream refuses values that nobody else can judge, such as the syntax of
   * a query. Default: none, because the values are checked before the request, and any other 4xx is
   * a failure of the upstream.
   */
  rejects?: number[]
  /** As the upstream's `classify`, consulted before it. */
  classify?: (answer: UpstreamResponse) => ResponseClass | undefined
  /**
   * Maps a successful answer. Must not throw for any JSON: unreadable members become null, or it
   * returns a ResponseClass.
   */
  map: (input: MapInput<Static<Parameters>>) => Static<Data> | ResponseClass
  /**
   * A recorded answer: serves tests, the catalog's example, the OpenAPI document and calls with a
   * test key.
   */
  example: Example<Static<Parameters>, Static<Data>>
}

export interface MapInput<Parameters> {
  /** The (first) answer's body. */
  body: unknown
  /** All bodies, if `request` gave several requests. */
  bodies: unknown[]
  parameters: Parameters
  context: CallContext
}

export interface Example<Parameters, Data> {
  parameters: Partial<Parameters>
  /** When it was recorded, if answer or request depend on the day. */
  now?: string
  /** The upstream's body (an array of bodies when `request` gives several requests). */
  response: unknown
  /**
   * What the upstream would have answered at the time of the recording for other parameters, when
   * the recordings tell it; `response` is the response above. Undefined if they do not, and the
   * answer to a test call says then for which parameters it was recorded.
   */
  responseFor?: (parameters: Parameters, response: unknown) => unknown
  data: Data
  /** Absent: the answer was recorded. */
  origin?: ExampleOrigin
}

/**
 * Where an answer comes from that nobody recorded: an example of the document of an own API, or a
 * value that is made from its schema.
 */
export type ExampleOrigin = 'document' | 'made'
