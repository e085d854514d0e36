/** Makes spans of one process and sends them to a collector; makes none where no collector is set. */
export interface Tracing {
  /** Starts a span; `parent` is the `traceparent` (W3C) of the one it belongs to. */
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
  /** For the job, so that the worker's spans join; undefined where nothing is traced. */
  traceparent: string | undefined
  set: (attributes: Attributes) => void
  /** Ends it; a code marks it as failed. */
  end: (code?: string) => void
}

const NO_SPAN: CallSpan = { traceparent: undefined, set: () => undefined, end: () => undefined }

/** `endpoint` is the collector's base address; its libraries are loaded only where there is one. */
export async function openTracing(endpoint: string | undefined, process: string): Promise<Tracing> {
  if (endpoint === undefined) return { start: () => NO_SPAN, close: async () => undefined }
  const { openOtlpTracing } = await import('./otlp.ts')
  return openOtlpTracing(endpoint, process)
}
