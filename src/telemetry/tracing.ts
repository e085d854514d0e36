import type { Config } from '../config.ts'
import type { Log } from '../log.ts'

/** Makes the spans of one process and sends them to a collector. `spans.ts` names the spans. */
export interface Tracing {
  /** @returns undefined if the trace is not sampled */
  start: (name: string, options: SpanOptions) => CallSpan | undefined
  /** Attributes of the address at which callers reach this gateway. */
  address: Attributes
  close: () => Promise<void>
}

export interface SpanOptions {
  kind: 'server' | 'internal' | 'producer' | 'consumer' | 'client'
  /** The `traceparent` (W3C) of the parent span; absent: the span begins a trace. */
  parent?: string | undefined
  /** The `traceparent` of a span in another trace. Any other value is ignored. */
  link?: unknown
  attributes: Attributes
}

export type Attributes = Record<string, string | number>

/** A span that has not ended. */
export interface CallSpan {
  /** The traceparent for child spans, in other processes too. */
  traceparent: string
  set: (attributes: Record<string, string | number | undefined>) => void
  /** Adds a link to a span of another trace that did work for this span. */
  link: (traceparent: string) => void
  /** Ends the span. A code marks it as failed. */
  end: (code?: string) => void
}

/** The id of the trace, for a log line. */
export function traceIdOf(traceparent: string): string | undefined {
  return traceparent.split('-')[1]
}

/**
 * Opens tracing. The libraries are loaded only if a collector is set.
 * @param process the kind of process
 *
 * @returns undefined if nothing is traced
 */
export async function openTracing(
  { traces, http }: Pick<Config, 'traces' | 'http'>,
  { process, log }: { process: string; log: Log },
): Promise<Tracing | undefined> {
  if (!traces.isTraced) return undefined
  const { openOtlpTracing } = await import('./otlp.ts')
  return openOtlpTracing({ process, traceRatio: traces.traceRatio, baseUrl: http.baseUrl, log })
}
