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
 * Each span is the child of the span above it. One request may serve several calls: a call that
 * shares the request, or gets its stored answer, has a link to the processing of the call for which
 * the request was sent. A caller's own trace is linked, not continued, because callers must not
 * decide what is sampled.
 *
 * Attributes never contain data of callers: no query, no values in a path, no key.
 */

/** The route that matches every call. */
const ROUTE = '/v1/call/{apiSlug}/{endpoint}'

/** The part of a request from which its span is made. The path comes from the catalog instead. */
export interface TracedRequest {
  method?: string | undefined
  headers: IncomingHttpHeaders
}

export function startCallSpan(
  tracing: Tracing,
  { method = 'GET', headers: { traceparent: link } }: TracedRequest,
  { origin, slug, endpoint }: { origin: CallOrigin; slug: string; endpoint?: string | undefined },
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

/** The span from the job's creation until Redis has it; undefined if the call is not traced. */
export function startSendSpan(tracing: Tracing, call: CallJob, lane: string): CallSpan | undefined {
  if (call.traceparent === undefined) return undefined
  return tracing.start(`send ${lane}`, {
    kind: 'producer',
    parent: call.traceparent,
    attributes: messaging('send', { call, lane }),
  })
}

/** The span of the processing by a worker; undefined if the call is not traced. */
export function startProcessSpan(tracing: Tracing, call: CallJob, lane: string): CallSpan | undefined {
  if (call.traceparent === undefined) return undefined
  return tracing.start(`process ${lane}`, {
    kind: 'consumer',
    parent: call.traceparent,
    attributes: messaging('process', { call, lane }),
  })
}

/** Attributes of a message. Each call is a message, even if its job carries several calls. */
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
  /** The call's traceparent; absent for a probe, and for a call that is not traced. */
  traceparent?: string | undefined
  /** How often the same request was sent before. */
  resends: number
}

/** The span of one request to the upstream, to which `origin` and `method` belong. */
export function startAttemptSpan(
  tracing: Tracing,
  { origin, method = 'GET' }: { origin: string; method?: string | undefined },
  { slug, source, traceparent, resends }: TracedAttempt,
): CallSpan | undefined {
  // The sampler of the API node did not select the call.
  if (source === 'call' && traceparent === undefined) return undefined
  return tracing.start(method, {
    kind: 'client',
    parent: traceparent,
    attributes: {
      'http.request.method': method,
      ...addressAttributes(origin),
      // Paths may contain values of parameters and keys of upstreams, so the path is not recorded.
      'url.full': `${origin}/REDACTED`,
      'agw.api': slug,
      'agw.source': source,
      ...(resends > 0 && { 'http.request.resend_count': resends }),
    },
  })
}

/** Attributes for scheme, host and port of an address. */
export function addressAttributes(address: string): Attributes {
  const { protocol, hostname, port } = new URL(address)
  const scheme = protocol.slice(0, -1)
  return {
    'url.scheme': scheme,
    'server.address': hostname,
    'server.port': port === '' ? (scheme === 'https' ? 443 : 80) : Number(port),
  }
}
