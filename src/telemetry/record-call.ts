import { type Catalog, knownEndpoint, knownSlug } from '../catalog/catalog.ts'
import type { Tier } from '../catalog/upstream.ts'
import type { Config } from '../config.ts'
import type { GatewayError } from '../errors.ts'
import { planOf } from '../limits/plans.ts'
import type { CallJob, CallOrigin } from '../queue/call-job.ts'
import type { Reply, ReplyHead } from '../queue/reply-head.ts'
import type { CallLines } from './call-lines.ts'
import type { CallLogWriter } from './call-log-writer.ts'
import { startCallSpan, type TracedRequest } from './spans.ts'
import type { Telemetry } from './telemetry.ts'
import { type CallSpan, traceIdOf } from './tracing.ts'

export interface RecordDeps {
  telemetry: Telemetry
  callLines: Pick<CallLines, 'write'>
  callLog: Pick<CallLogWriter, 'write'>
  catalog: Catalog
  config: Pick<Config, 'plans'>
}

/** A call that came to this node, whatever becomes of it. */
export interface CallArrival {
  origin: CallOrigin
  /** Milliseconds of the process's clock. */
  startedAt: number
  /** The API of the catalog that its address names, or `-`. */
  slug: string
  endpoint: string | undefined
  /** Undefined if nothing is traced. */
  span: CallSpan | undefined
}

/** `url` is the request's as it came, and nothing of its query is kept. */
export function noteArrival(
  { catalog, telemetry: { tracing } }: Pick<RecordDeps, 'catalog'> & { telemetry: Pick<Telemetry, 'tracing'> },
  origin: CallOrigin,
  request: TracedRequest & { url?: string | undefined },
): CallArrival {
  const [, name = '', path = ''] =
    /^\/v1\/call\/([a-z0-9-]+)(?:(\/[a-z0-9-]+)?(?:\?|$)|\/)/.exec(request.url ?? '') ?? []
  const slug = knownSlug(catalog, name)
  const endpoint = knownEndpoint(catalog, name, path)
  const span = tracing && startCallSpan(tracing, request, { origin, slug, endpoint })
  return { origin, startedAt: performance.now(), slug, endpoint, span }
}

/** What came of a call on its node. */
export interface RecordedEnd {
  /** Absent for a call that was refused before it was queued. */
  job?: CallJob | undefined
  /** Whose call it is; undefined if its credential was refused. Then the call has no row. */
  caller: (Pick<CallJob, 'accountId' | 'mode'> & { keyId: string | undefined; tier: Tier }) | undefined
  /** Of a refused call, if it had an id by then. */
  callId?: string | undefined
  /** How long admission took. Milliseconds. */
  admissionMs?: number | undefined
  /** The forecast wait for a permit. Milliseconds. */
  quotedMs?: number | undefined
  /** The status that the caller got without an error. */
  statusWithoutError?: number
  error?: GatewayError | undefined
  reply?: Reply | undefined
  /** False for an asynchronous call that was queued: its worker counts it when it has ended. */
  isCountedHere: boolean
}

/**
 * Records a call that its node has answered: one trace, one row, one count, and a log line if its
 * account has lines left.
 */
export function recordCall(deps: RecordDeps, arrival: CallArrival, end: RecordedEnd): void {
  const { telemetry, callLines } = deps
  const { origin, startedAt, span } = arrival
  const { job, caller, error, reply, isCountedHere } = end
  const answerMs = performance.now() - startedAt
  const slug = job?.slug ?? arrival.slug
  const status = error?.status ?? end.statusWithoutError ?? 200
  const code = error?.code
  const { accountId: account, mode } = job ?? caller ?? {}
  const { times, cacheStatus, cause: reason } = reply?.head ?? {}
  if (span) endSpan(span, { job, account, status, code, times, cacheStatus })
  const counted = { slug, mode, status, code: code ?? 'OK', accountId: account, times, cacheStatus }
  telemetry.endedCalls.add({ call: counted, answerMs, isCountedHere })
  const line = {
    ...{ requestId: origin.requestId, callId: job?.id, account, slug, endpoint: job?.endpoint, mode, status, code },
    // Why the call failed, in the same line: of the upstream, or of what admission needed.
    reason: reason ?? (status > 500 && error?.cause instanceof Error ? error.cause.message : undefined),
    ms: round(answerMs),
    queueMs: times && round(times.queueMs),
    permitMs: times && round(times.permitMs),
    upstreamMs: times && round(times.upstreamMs),
    attempts: times?.attempts,
    cache: cacheStatus,
    // As OpenTelemetry names it in logs.
    trace_id: traceIdOf(span?.traceparent),
  }
  callLines.write(line, { account, codes: { [code ?? status]: 1 }, message: 'call' })
  if (isCountedHere) writeRow(deps, arrival, { ...end, slug, status, answerMs })
}

interface TracedEnd {
  times: ReplyHead['times'] | undefined
  cacheStatus: string | undefined
  job: CallJob | undefined
  account: string | undefined
  status: number
  code: string | undefined
}

function endSpan(span: CallSpan, { job, account, status, code, times, cacheStatus }: TracedEnd): void {
  span.set({
    'http.response.status_code': status,
    'agw.code': code ?? 'OK',
    'agw.account_id': account,
    'agw.call_id': job?.id,
    'agw.endpoint': job?.endpoint,
    'agw.mode': job?.mode,
    'agw.cache_status': cacheStatus,
    'agw.queue_ms': times?.queueMs,
    'agw.permit_ms': times?.permitMs,
    'agw.upstream_ms': times?.upstreamMs,
    'agw.attempts': times?.attempts,
  })
  // A refusal of what the caller sent is no failure of the server.
  span.end(status >= 500 ? (code ?? String(status)) : undefined)
}

function writeRow(
  { callLog, config }: RecordDeps,
  arrival: CallArrival,
  end: RecordedEnd & { slug: string; status: number; answerMs: number },
): void {
  const { job, caller, callId, admissionMs, error, reply, slug, status, answerMs: totalMs } = end
  const of = job ?? caller
  if (!of) return
  const { accountId, keyId, mode } = of
  const { times, cacheStatus, cause } = reply?.head ?? {}
  const quotedMs = job ? end.quotedMs : error?.details.retryAfterMs
  const origin = {
    ...arrival.origin,
    ...(admissionMs === undefined ? {} : { admissionMs }),
    ...(quotedMs === undefined ? {} : { quotedMs }),
  }
  callLog.write({
    ...{ id: job?.id ?? callId, origin, accountId, keyId, mode, slug, endpoint: job?.endpoint ?? arrival.endpoint },
    ...{ status, totalMs, code: error?.code, cause, times, cacheStatus, bytes: reply?.body.length },
    refusedBy: job || !caller ? undefined : config.plans[planOf(caller.tier)],
  })
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
