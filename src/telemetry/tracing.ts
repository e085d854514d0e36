import type { Config } from '../config.ts'
import type { Log } from '../log.ts'

/** Makes spans of one process and sends them to a collector. `spans.ts` has their names. */
export interface Tracing {
  /** @returns undefined if the sampler leaves the trace out */
  start: (name: string, options: SpanOptions) => CallSpan | undefined
  /** Attributes of the address at which callers reach this gateway. */
  address: Attributes
  close: () => Promise<void>
}

export interface SpanOptions {
  kind: 'server' | 'internal' | 'producer' | 'consumer' | 'client'
  /** The `traceparent` (W3C) of the span that it belongs to; absent: it begins a trace. */
  parent?: string | undefined
  /** The `traceparent` of a span of another trace. Anything that is no traceparent is left out. */
  link?: unknown
  attributes: Attributes
}

export type Attributes = Record<string, string | number>

/** One span under way. */
export interface CallSpan {
  /** For the spans below it, in other processes too. */
  traceparent: string
  set: (attributes: Record<string, string | number | undefined>) => void
  /** Names a span of another trace that did work for this span. */
  link: (traceparent: string) => void
  /** Ends it; a code marks it as failed. */
  end: (code?: string) => void
}

/** The id of the trace, for a log line. */
export function traceIdOf(traceparent: string): string | undefined {
  return traceparent.split('-')[1]
}

/**
 * The libraries are loaded only if a collector is set. `process` names the kind of process.
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
