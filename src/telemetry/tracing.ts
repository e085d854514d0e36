import type { Config } from '../config.ts'
import type { Log } from '../log.ts'

/** Makes spans of one process and sends them to a collector. */
export interface Tracing {
  /** Starts a span; `parent` is the `traceparent` (W3C) of the span it belongs to. */
  start: (name: string, options?: SpanOptions) => CallSpan
  close: () => Promise<void>
}

export interface SpanOptions {
  kind?: 'server' | 'producer' | 'consumer' | 'client'
  parent?: string | undefined
  attributes?: Attributes
}

type Attributes = Record<string, string | number>

/** One span under way. */
export interface CallSpan {
  /** For the job, so that the worker's spans join; undefined if nothing is traced. */
  traceparent: string | undefined
  set: (attributes: Attributes) => void
  /** Ends it; a code marks it as failed. */
  end: (code?: string) => void
}

/**
 * The libraries are loaded only if a collector is set. `process` names the kind of process.
 *
 * @returns undefined if nothing is traced
 */
export async function openTracing(
  { isTraced, traceRatio }: Config['traces'],
  { process, log }: { process: string; log: Log },
): Promise<Tracing | undefined> {
  if (!isTraced) return undefined
  const { openOtlpTracing } = await import('./otlp.ts')
  return openOtlpTracing({ process, traceRatio, log })
}
