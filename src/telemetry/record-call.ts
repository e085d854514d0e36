import { UpstreamDownError } from '../caps/refusal.ts'
import { type Catalog, knownTarget } from '../catalog/catalog.ts'
import type { Tier } from '../catalog/upstream.ts'
import type { Config } from '../config.ts'
import type { GatewayError } from '../errors.ts'
import { PLAN_OF_TIER } from '../limits/plans.ts'
import type { CallJob, CallOrigin } from '../queue/call-job.ts'
import { type Reply, reachOf } from '../queue/reply-head.ts'
import type { CallLines } from './call-lines.ts'
import type { CallLogWriter } from './call-log-writer.ts'
import { type EndedCall, lineOf } from './ended-call.ts'
import { startCallSpan, type TracedRequest } from './spans.ts'
import type { Telemetry } from './telemetry.ts'
import type { CallSpan } from './tracing.ts'

export interface RecordDeps {
  telemetry: Telemetry
  callLines: Pick<CallLines, 'write'>
  callLog: Pick<CallLogWriter, 'write'>
  catalog: Catalog
  config: Pick<Config, 'plans'>
}

/** A call that arrived at this node. */
export interface CallArrival {
  origin: CallOrigin
  /** Milliseconds of the process's monotonic clock. */
  startedAt: number
  /** Undefined if the call is not traced. */
  span: CallSpan | undefined
}

/** Notes that a call arrives. Its address is only read for a trace. */
export function noteArrival(
  { catalog, telemetry: { tracing } }: Pick<RecordDeps, 'catalog'> & { telemetry: Pick<Telemetry, 'tracing'> },
  origin: CallOrigin,
  request: TracedRequest & AddressedRequest,
): CallArrival {
  const span = tracing && startCallSpan(tracing, request, { origin, ...addressedTarget(catalog, request) })
  return { origin, startedAt: performance.now(), span }
}

/** `url` is the raw address of the request. */
interface AddressedRequest {
  url?: string | undefined
}

interface Target {
  /** `-` if the catalog does not have the API. */
  slug: string
  /** Absent if the API has no such endpoint. */
  endpoint?: string | undefined
}

/** The API and the endpoint in the address of a call. Nothing of its query is kept. */
export function addressedTarget(catalog: Catalog, { url = '' }: AddressedRequest): Target {
  const [, name = '', path = ''] = /^\/v1\/call\/([a-z0-9-]+)(?:(\/[a-z0-9-]+)?(?:\?|$)|\/)/.exec(url) ?? []
  return knownTarget(catalog, name, path)
}

/** How a call ended on its node. */
interface RecordedEnd {
  target: Target
  /** The caller; undefined if the credential was refused. */
  principal: (Pick<CallJob, 'accountId' | 'mode'> & { keyId: string | undefined; tier: Tier }) | undefined
  /** Undefined if the call was refused before it got an id. */
  callId: string | undefined
  /** Duration of admission, milliseconds. */
  admissionMs?: number | undefined
  /**
   * Forecast wait for a permit, milliseconds. Absent if the call was refused before it had a
   * forecast.
   */
  quotedMs?: number | undefined
  /** The status that the caller got, if there was no error. */
  statusWithoutError?: number
  error?: GatewayError | undefined
  reply?: Reply | undefined
  /** Whether the call is asynchronous and queued. Its worker then ends and counts it. */
  isEndedByWorker?: boolean
}

/**
 * Records a call that its node has answered: one trace, one row, one count, and a log line if the
 * account still has lines.
 */
export function recordCall(deps: RecordDeps, arrival: CallArrival, end: RecordedEnd): void {
  const { telemetry, callLines, callLog } = deps
  const { error, isEndedByWorker = false } = end
  const call = endedCall(deps, arrival, end)
  const { accountId: account, code, status } = call
  if (arrival.span) endSpan(arrival.span, call)
  telemetry.endedCalls.add(call, { isEndedByWorker })
  callLines.write({ account, code: code ?? String(status), message: 'call' }, () => {
    const line = lineOf(call)
    // The reason of the failure: from the upstream, or from something that admission needed.
    if (status > 500 && error?.cause instanceof Error) line.reason ??= error.cause.message
    return line
  })
  if (!isEndedByWorker) callLog.write(call)
}

function endedCall({ config }: RecordDeps, arrival: CallArrival, end: RecordedEnd): EndedCall {
  const { target, principal, callId, admissionMs, quotedMs, statusWithoutError = 200, error, reply } = end
  const {
    times,
    cacheStatus,
    cause = error?.cause instanceof UpstreamDownError ? error.cause.message : undefined,
  } = reply?.head ?? {}
  return {
    ...arrival.origin,
    id: callId,
    accountId: principal?.accountId,
    keyId: principal?.keyId,
    mode: principal?.mode,
    slug: target.slug,
    endpoint: target.endpoint,
    status: error?.status ?? statusWithoutError,
    code: error?.code,
    cause,
    times,
    cacheStatus,
    reach: reply && reachOf(reply.head),
    totalMs: performance.now() - arrival.startedAt,
    admissionMs,
    bytes: reply?.body.length,
    quotedMs: quotedMs ?? error?.details.retryAfterMs,
    refusedByPlan: quotedMs !== undefined || !principal ? undefined : config.plans[PLAN_OF_TIER[principal.tier]],
    traceparent: arrival.span?.traceparent,
  }
}

function endSpan(span: CallSpan, call: EndedCall): void {
  const { id, accountId, endpoint, mode, status, code, times, cacheStatus } = call
  span.set({
    'http.response.status_code': status,
    'agw.code': code ?? 'OK',
    'agw.account_id': accountId,
    'agw.call_id': id,
    'agw.endpoint': endpoint,
    'agw.mode': mode,
    'agw.cache_status': cacheStatus,
    'agw.queue_ms': times?.queueMs,
    'agw.permit_ms': times?.permitMs,
    'agw.upstream_ms': times?.upstreamMs,
    'agw.attempts': times?.attempts,
  })
  // A refusal because of the request is not a failure of the server.
  span.end(status >= 500 ? (code ?? String(status)) : undefined)
}
