import { type Context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { CallSpan, SpanOptions, Tracing } from './tracing.ts'

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** `endpoint` is the collector's base address (OTLP over HTTP); `process` names the kind of process. */
export function openOtlpTracing(endpoint: string, process: string): Tracing {
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': `agent-api-gateway-${process}` }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }),
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

function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/** Anything that is no traceparent starts a trace of its own. */
function contextOf(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? []
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
  })
}
