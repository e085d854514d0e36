import type { Static, TObject } from 'typebox'
import type { CacheRule, PrefetchRule } from './cache-rule.ts'
import type { ResponseClass } from './response-class.ts'
import type { UpstreamRequest, UpstreamResponse } from './upstream-request.ts'

/** What pure functions of an endpoint know of a call besides its parameters. */
export interface CallContext {
  /** Now, milliseconds since the epoch. */
  now: number
  /**
   * The address from which the call came; behind trusted proxies, the address that they report.
   * Only `complete` may use it, because it is not sent to workers. It is a function because few
   * endpoints need it and reading the headers of proxies costs time.
   */
  callerAddress?: () => string
}

/**
 * `read` changes nothing. `repeatable` changes something, but repeating the same request does no
 * harm. `once` must not be sent again after its first byte was written. Only answers to reads are
 * stored or shared.
 */
export type Effect = 'read' | 'repeatable' | 'once'

export interface Endpoint<Parameters extends TObject = TObject, Data extends TObject = TObject> {
  description: string
  /**
   * The declared parameters: types, bounds, enums, patterns, defaults, descriptions. Each is a
   * plain value or a list of plain values, except `body`, which holds the JSON body of a request.
   */
  parameters: Parameters
  /**
   * Other names that callers may use for a parameter, because other APIs of the catalog call the
   * same thing by these names. The upstream only receives the declared name.
   */
  aliases?: { [Name in Extract<keyof Static<Parameters>, string>]?: readonly string[] }
  /**
   * The schema of `data` in a successful answer. Every member of the specification is always
   * present; it is nullable if the upstream may lack it.
   */
  data: Data
  /** The effect of a request. Default: read. */
  effect?: Effect
  /**
   * For a write: whether it may delete or overwrite something. MCP tells models so, and they ask
   * their users.
   */
  isDestructive?: boolean
  /**
   * A request header with the id of the call, the same in every attempt. The upstream uses it to
   * recognise a repeated request.
   */
  idempotencyHeader?: string
  /** Largest body of a request, bytes of its JSON; undefined for an endpoint that takes none. */
  bodyBytesMax?: number
  /**
   * If set, data that do not fit their schema are still sent to the caller, because the author of
   * the document may have described the answers wrongly.
   */
  isLenient?: boolean
  /** How long answers are stored; absent: every call reaches the upstream. */
  cache?: CacheRule<Static<Parameters>>
  /**
   * Serves calls from one larger answer of the upstream. For upstreams that allow few requests and
   * return many items.
   */
  pool?: PrefetchRule<Static<Parameters>>
  /** Statuses besides 2xx whose answer `map` reads, such as 204 for an empty list. */
  acceptStatuses?: number[]
  /**
   * Completes checked parameters before the call uses up anything: normalizes each of them, and
   * fills in values that depend on the caller, the day or another parameter. Throws
   * InvalidParameter for rules that a schema cannot express.
   */
  complete?: (parameters: Static<Parameters>, context: CallContext) => Static<Parameters>
  /** The request of a call, or several requests. Each counts against the cap. */
  request: (parameters: Static<Parameters>, context: CallContext) => UpstreamRequest | UpstreamRequest[]
  /**
   * Whether a 404 or 410 is this upstream's way to say "not found". Any other 404 or 410 is a
   * failure, because the route has moved.
   */
  isNotFound?: (answer: UpstreamResponse) => boolean
  /**
   * Statuses by which the upstream refuses values that only it can judge, such as the syntax of a
   * query. Default: none. The gateway checks values before the request, so any other 4xx is a
   * failure of the upstream.
   */
  rejects?: number[]
  /** As `classify` of the upstream, but called before it. */
  classify?: (answer: UpstreamResponse) => ResponseClass | undefined
  /**
   * Maps a successful answer. Must not throw for any JSON: members that it cannot read become null,
   * or it returns a ResponseClass.
   */
  map: (input: MapInput<Static<Parameters>>) => Static<Data> | ResponseClass
  /**
   * A recorded answer. It is used by tests, by the catalog, by the OpenAPI document, and as the
   * answer to calls with a test key.
   */
  example: Example<Static<Parameters>, Static<Data>>
}

export interface MapInput<Parameters> {
  /** The body of the answer; of the first answer if there are several. */
  body: unknown
  /** The bodies of all answers, if `request` returned several requests. */
  bodies: unknown[]
  parameters: Parameters
  context: CallContext
}

export interface Example<Parameters, Data> {
  parameters: Partial<Parameters>
  /** When it was recorded, if the answer or the request depends on the day. */
  now?: string
  /** The upstream's body; an array of bodies if `request` returns several requests. */
  response: unknown
  /**
   * Returns what the upstream would have answered for other parameters at the time of the
   * recording, if the recording shows it. `response` is the response above. If undefined, the
   * answer to a test call says for which parameters it was recorded.
   */
  responseFor?: (parameters: Parameters, response: unknown) => unknown
  data: Data
  /** Absent if the answer was recorded. */
  origin?: ExampleOrigin
}

/**
 * Where an example comes from if nobody recorded it: an example of the whole answer in the document
 * of an own API, or a value made from the schema of the answer.
 */
export type ExampleOrigin = 'document' | 'made'
