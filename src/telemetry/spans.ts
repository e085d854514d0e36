import type { IncomingHttpHeaders } from 'node:http'
import type { CallJob, CallOrigin } from '../queue/call-job.ts'
import type { Attributes, CallSpan, Tracing } from './tracing.ts'

/**
 * The spans of a call, named by OpenTelemetry's semantic conventions for HTTP and messaging
 * (https://opentelemetry.io/docs/specs/semconv, version in `otlp.ts`):
 *
 * - the request at the API node (server; internal for a call of a batch or an MCP tool),
 * - its way into a lane (producer),
 * - its processing by a worker (consumer),
 * - each request to the upstream (client).
 *
 * Each is the child of the span above it. One request may answer several calls: a call that shares
 * it, or gets its stored answer, links to the processing of the call that it was sent for. A
 * caller's own trace is linked and not joined, because callers must not choose what is sampled.
 *
 * Attributes never hold what a caller sent: no query, no value in a path, no key.
 */

/** Every address of a call, which the route matches. */
const ROUTE = '/v1/call/{apiSlug}/{endpoint}'

/** The part of a request that its span is made of; the address is known from the catalog. */
export interface TracedRequest {
  method?: string | undefined
  headers: IncomingHttpHeaders
}

export function startCallSpan(
  tracing: Tracing,
  { method = 'GET', headers: { traceparent: link } }: TracedRequest,
  { origin, slug, endpoint }: { origin: CallOrigin; slug: string; endpoint: string | undefined },
): CallSpan | undefined {
  const { requestId, via } = origin
  const attributes = { 'agw.api': slug, 'agw.request_id': requestId, 'agw.via': via }
  if (via !== 'call') return tracing.start(`call ${slug}`, { kind: 'internal', link, attributes })
  const path = endpoint === undefined ? ROUTE : `/v1/call/${slug}${endpoint}`
  return tracing.start(`${method} ${ROUTE}`, {
    kind: 'server',
    link,
    attributes: {
      ...{ 'http.request.method': method, 'http.route': ROUTE, 'url.path': path },
      ...tracing.address,
      ...attributes,
    },
  })
}

/** From the call's job until Redis has it; undefined for a call that is not traced. */
export function startSendSpan(tracing: Tracing, call: CallJob, lane: string): CallSpan | undefined {
  if (call.traceparent === undefined) return undefined
  return tracing.start(`send ${lane}`, {
    kind: 'producer',
    parent: call.traceparent,
    attributes: messaging('send', { call, lane }),
  })
}

/** Undefined for a call that is not traced. */
export function startProcessSpan(tracing: Tracing, call: CallJob, lane: string): CallSpan | undefined {
  if (call.traceparent === undefined) return undefined
  return tracing.start(`process ${lane}`, {
    kind: 'consumer',
    parent: call.traceparent,
    attributes: messaging('process', { call, lane }),
  })
}

/** A call is a message, whether its job carries one or sixteen of them. */
function messaging(operation: 'send' | 'process', { call, lane }: { call: CallJob; lane: string }): Attributes {
  return {
    'messaging.system': 'bullmq',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': lane,
    'messaging.message.id': call.id,
    'agw.api': call.slug,
  }
}

export interface TracedAttempt {
  slug: string
  source: 'call' | 'probe'
  /** Of the call; absent for a probe, and for a call that is not traced. */
  traceparent?: string | undefined
  /** How often the same request was sent before. */
  resends: number
}

/** `origin` and `method` are of the request to the upstream. */
export function startAttemptSpan(
  tracing: Tracing,
  { origin, method = 'GET' }: { origin: string; method?: string | undefined },
  { slug, source, traceparent, resends }: TracedAttempt,
): CallSpan | undefined {
  // The sampler of the API node has left the call out.
  if (source === 'call' && traceparent === undefined) return undefined
  return tracing.start(method, {
    kind: 'client',
    parent: traceparent,
    attributes: {
      'http.request.method': method,
      ...addressAttributes(origin),
      // Values of parameters and keys of upstreams stand in paths too.
      'url.full': `${origin}/REDACTED`,
      'agw.api': slug,
      'agw.source': source,
      ...(resends > 0 && { 'http.request.resend_count': resends }),
    },
  })
}

/** Scheme, host and port of an address. */
export function addressAttributes(address: string): Attributes {
  const { protocol, hostname, port } = new URL(address)
  const scheme = protocol.slice(0, -1)
  return {
    'url.scheme': scheme,
    'server.address': hostname,
    'server.port': port === '' ? (scheme === 'https' ? 443 : 80) : Number(port),
  }
}
