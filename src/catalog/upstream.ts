/**
 * An upstream as the gateway knows it, whether a file in src/upstreams or a document declares it.
 * It is data and pure functions (parameters, request, mapping, recorded example): no I/O, no
 * environment, no clock. `upstream-file.ts` has what a file says in a shorter form.
 */
import type { Static, TObject } from 'typebox'
import type { CacheRule, PrefetchRule } from './cache-rule.ts'
import type { ResponseClass } from './response-class.ts'
import type { Terms } from './terms.ts'

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
   * Members of the data that only some things have, or have at times, besides those that are null
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

/** One HTTP request to the upstream, relative to its base URL. */
export interface UpstreamRequest {
  path: EncodedPath
  /** Default: GET. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * In this order; undefined members are left out, and the name of a list is repeated for each
   * item.
   */
  query?: Record<string, string | number | readonly string[] | undefined>
  /** Lower-case names. */
  headers?: Record<string, string>
  /** The text of the body. */
  body?: string
}

/**
 * One answer of the upstream, read and parsed; `body` is undefined when it was empty or not JSON.
 */
export interface UpstreamResponse {
  status: number
  headers: Record<string, string>
  body: unknown
  /** The beginning of an error's body that is not JSON. */
  errorText?: string
}

/** What a pure function may know of the call besides its parameters. */
export interface CallContext {
  /** Now, milliseconds since the epoch. */
  now: number
  /**
   * Address the call came from, behind trusted proxies; known to `complete` alone, for it is not
   * sent on.
   */
  callerAddress?: string
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
   * Of a write: whether it may remove or overwrite something. Models are told, and ask their users.
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
   * Completes checked parameters before anything is spent: trims, changes case, fills in what
   * depends on the caller or the day. Throws InvalidParameter for what a schema cannot say.
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

declare const encoded: unique symbol
/** A request path in which every value is one percent-encoded segment: only `path` makes it. */
export type EncodedPath = string & { readonly [encoded]: true }

/**
 * Builds a request path; each `${value}` becomes one percent-encoded segment part.
 *
 * @throws InvalidParameter for `.` and `..`, which no encoding keeps from being resolved (RFC 3986,
 *   5.2.4), and for an empty value, which would name another resource
 */
export function path(fixed: TemplateStringsArray, ...values: (string | number)[]): EncodedPath {
  let result = fixed[0] ?? ''
  values.forEach((value, index) => {
    const text = String(value)
    if (text === '' || text === '.' || text === '..' || !text.isWellFormed()) {
      throw new InvalidParameter(undefined, 'it cannot be a path segment')
    }
    result += encodeURIComponent(text) + fixed[index + 1]
  })
  return result as EncodedPath
}

/**
 * A text parameter without the blanks around it.
 *
 * @throws InvalidParameter when nothing is left, or it holds half a surrogate pair, which no URL
 *   can carry
 */
export function trimmed(parameter: string, value: string): string {
  const text = value.trim()
  if (text === '') throw new InvalidParameter(parameter, 'it is blank')
  if (!text.isWellFormed()) throw new InvalidParameter(parameter, 'it is not well-formed Unicode')
  return text
}

/** As `trimmed`, with single spaces between the words. */
export function singleSpaced(parameter: string, value: string): string {
  return trimmed(parameter, value).replace(/\s+/g, ' ')
}

export function upperCased(_parameter: string, value: string): string {
  return value.toUpperCase()
}

export function lowerCased(_parameter: string, value: string): string {
  return value.toLowerCase()
}

/**
 * A parameter that passed its schema and still cannot be used; `reason` completes "Parameter x is
 * invalid: …".
 */
export class InvalidParameter extends Error {
  readonly parameter: string | undefined
  readonly reason: string

  constructor(parameter: string | undefined, reason: string) {
    super(`Parameter ${parameter ?? ''} is invalid: ${reason}`)
    this.name = 'InvalidParameter'
    this.parameter = parameter
    this.reason = reason
  }
}
