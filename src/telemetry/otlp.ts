import { randomUUID } from 'node:crypto'
import {
  type Context,
  defaultTextMapGetter,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { setGlobalErrorHandler, TRACE_PARENT_HEADER, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Log } from '../log.ts'
import { lookup } from '../net/lookup.ts'
import { VERSION } from './metrics.ts'
import { addressAttributes } from './spans.ts'
import type { CallSpan, SpanOptions, Tracing } from './tracing.ts'

/** The version of the semantic conventions that `spans.ts` follows. */
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.40.0'

interface OtlpOptions {
  process: string
  traceRatio: number
  /** The address at which callers reach the gateway. */
  baseUrl: string
  log: Log
}

/** Shortest time between two warnings about lost spans, milliseconds. */
const WARN_MS = 60_000

/**
 * Logs a failure to send at most once a minute, because an unreachable collector fails each second.
 */
function warnOnce(log: Log): (error: unknown) => void {
  let warnedAt = Number.NEGATIVE_INFINITY
  return (error) => {
    if (performance.now() - warnedAt < WARN_MS) return
    warnedAt = performance.now()
    log.warn({ err: error }, 'failed to send traces to the collector')
  }
}

const propagator = new W3CTraceContextPropagator()

/**
 * Sends spans by OTLP over HTTP. The libraries read their own `OTEL_` variables: address, headers,
 * timeout and compression of the exporter, and the attributes of the resource.
 * @param options.process the kind of process
 * @param options.traceRatio the share of traces that are sent
 */
export function openOtlpTracing({ process, traceRatio, baseUrl, log }: OtlpOptions): Tracing {
  setGlobalErrorHandler(warnOnce(log))
  const fromEnvironment = detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })
  const named = resourceFromAttributes({
    'service.name': `agent-api-gateway-${process}`,
    'service.version': VERSION,
    'service.instance.id': randomUUID(),
  })
  const provider = new TracerProvider({
    // If both have an attribute, the environment wins.
    resource: defaultResource().merge(named).merge(fromEnvironment),
    // Workers follow the sampling decision of the API node, which is part of the job.
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(traceRatio) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ httpAgentOptions: { lookup } }),
        scheduledDelayMillis: 1_000,
      }),
    ],
  })
  const tracer = provider.getTracer('agent-api-gateway', VERSION, { schemaUrl: SCHEMA_URL })
  return {
    start: (name, options) => startSpan(tracer, name, options),
    address: addressAttributes(baseUrl),
    // An unreachable collector must not delay the end of the process.
    close: async () => await provider.shutdown().catch(() => undefined),
  }
}

const KINDS = {
  server: SpanKind.SERVER,
  internal: SpanKind.INTERNAL,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
}

function startSpan(
  tracer: Tracer,
  name: string,
  { kind, parent, link, attributes }: SpanOptions,
): CallSpan | undefined {
  const links = typeof link === 'string' ? linksTo(link) : []
  const span = tracer.startSpan(name, { kind: KINDS[kind], attributes, links }, contextOf(parent))
  if (!span.isRecording()) return undefined
  const { traceId, spanId } = span.spanContext()
  return {
    // The flag 01 means "sampled" (https://www.w3.org/TR/trace-context/#traceparent-header). Spans
    // that are not sampled are not made.
    traceparent: `00-${traceId}-${spanId}-01`,
    set: (more) => void span.setAttributes(more),
    link: (traceparent) => void span.addLinks(linksTo(traceparent)),
    end: (code) => {
      if (code !== undefined) {
        span.setAttribute('error.type', code)
        span.setStatus({ code: SpanStatusCode.ERROR })
      }
      span.end()
    },
  }
}

/** A link to the span of a traceparent; no link for any other text. */
function linksTo(traceparent: string): { context: SpanContext }[] {
  const context = trace.getSpanContext(contextOf(traceparent))
  return context && isSpanContextValid(context) ? [{ context }] : []
}

/** The context of a traceparent. Any other text starts a new trace. */
function contextOf(traceparent: string | undefined): Context {
  if (traceparent === undefined) return ROOT_CONTEXT
  return propagator.extract(ROOT_CONTEXT, { [TRACE_PARENT_HEADER]: traceparent }, defaultTextMapGetter)
}
