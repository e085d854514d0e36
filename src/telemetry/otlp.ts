import { randomUUID } from 'node:crypto'
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
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
import type { CallSpan, SpanOptions, Tracing } from './tracing.ts'

interface OtlpOptions {
  process: string
  traceRatio: number
  log: Log
}

/** At least so long between two warnings that spans are lost, milliseconds. */
const WARN_MS = 60_000

/** A collector that does not answer fails each second: the log says it once a minute. */
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
 * Sends spans by OTLP over HTTP. The libraries read their `OTEL_` variables themselves: address,
 * headers, timeout and compression of the exporter, and the attributes of the resource. `process`
 * names the kind of process, `traceRatio` the share of traces that are sent.
 */
export function openOtlpTracing({ process, traceRatio, log }: OtlpOptions): Tracing {
  setGlobalErrorHandler(warnOnce(log))
  const fromEnvironment = detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })
  const named = resourceFromAttributes({
    'service.name': `agent-api-gateway-${process}`,
    'service.version': VERSION,
    'service.instance.id': randomUUID(),
  })
  const provider = new TracerProvider({
    // If both name an attribute, the environment wins.
    resource: defaultResource().merge(named).merge(fromEnvironment),
    // A worker's spans follow the decision of the API node, which travels with the call.
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(traceRatio) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ httpAgentOptions: { lookup } }),
        scheduledDelayMillis: 1_000,
      }),
    ],
  })
  const tracer = provider.getTracer('agent-api-gateway')
  return {
    start: (name, options = {}) => startSpan(tracer, name, options),
    // A collector that does not answer must not hold up the end of the process.
    close: async () => await provider.shutdown().catch(() => undefined),
  }
}

const KINDS = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
}

function startSpan(tracer: Tracer, name: string, { kind = 'server', parent, attributes = {} }: SpanOptions): CallSpan {
  const span = tracer.startSpan(name, { kind: KINDS[kind], attributes }, contextOf(parent))
  return {
    traceparent: traceparentOf(span),
    set: (more) => void span.setAttributes(more),
    end: (code) => {
      if (code !== undefined) {
        span.setAttribute('error.type', code)
        span.setStatus({ code: SpanStatusCode.ERROR, message: code })
      }
      span.end()
    },
  }
}

function traceparentOf(span: Span): string | undefined {
  const carrier: Record<string, string> = {}
  propagator.inject(trace.setSpan(ROOT_CONTEXT, span), carrier, defaultTextMapSetter)
  return carrier[TRACE_PARENT_HEADER]
}

/** Anything that is no traceparent starts a trace of its own. */
function contextOf(traceparent: string | undefined): Context {
  if (traceparent === undefined) return ROOT_CONTEXT
  return propagator.extract(ROOT_CONTEXT, { [TRACE_PARENT_HEADER]: traceparent }, defaultTextMapGetter)
}
