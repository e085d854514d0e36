import type { PlanLimits } from '../config.ts'
import type { ErrorCode } from '../errors.ts'
import type { CallJob, CallOrigin } from '../queue/call-job.ts'
import type { CallTimes } from '../queue/reply-head.ts'
import { hasReached, type Reach } from '../queue/verdict.ts'
import type { Metrics } from './metrics.ts'
import type { MinuteStats } from './minute-stats.ts'
import { traceIdOf } from './tracing.ts'

/**
 * How a call reached the gateway; absent for asynchronous calls of a version that does not record
 * it.
 */
type Origin = { [member in keyof CallOrigin]?: CallOrigin[member] | undefined }

/**
 * A call that has ended. Its metrics, counts, trace, log line and row are made from this value. It
 * never contains parameters, bodies or addresses.
 */
export interface EndedCall extends Origin {
  /** `call_…`; absent if the call was refused before it got an id. */
  id?: string | undefined
  /** Undefined if the credential is unknown, like `mode`. Such a call gets no row. */
  accountId: string | undefined
  keyId?: string | undefined
  mode: CallJob['mode'] | undefined
  /** The slug, or `-` if the catalog does not have the API. */
  slug: string
  /** The endpoint, if the catalog has it. */
  endpoint?: string | undefined
  status: number
  /** Absent for success. */
  code?: ErrorCode | undefined
  /** Why the upstream failed, in words of `failure-words.ts`. */
  cause?: string | undefined
  /** Absent if no worker ran the call. */
  times?: CallTimes | undefined
  /** How far the requests of the call got; absent if no worker ran the call. */
  reach?: Reach | undefined
  /**
   * Milliseconds from request to answer. For an asynchronous call: from the check of its limits to
   * its end.
   */
  totalMs: number
  /** The header `Cache-Status`. */
  cacheStatus?: string | undefined
  bytes?: number | undefined
  /**
   * Set if the call was refused before it was queued: the plan of its account. Such a call is free,
   * so the number of its rows is limited.
   */
  refusedByPlan?: Pick<PlanLimits, 'perMinute'> | undefined
  traceparent?: string | undefined
}

/** The members of a call's log line. */
export function lineOf(call: EndedCall): Record<string, unknown> {
  const { id, requestId, accountId, slug, endpoint, mode, status, code, cause, times, totalMs, cacheStatus } = call
  const { traceparent } = call
  return {
    ...{ requestId, callId: id, account: accountId, slug, endpoint, mode, status, code, reason: cause },
    ms: tenths(totalMs),
    queueMs: times && tenths(times.queueMs),
    permitMs: times && tenths(times.permitMs),
    upstreamMs: times && tenths(times.upstreamMs),
    attempts: times?.attempts,
    cache: cacheStatus,
    // The name that OpenTelemetry uses in logs.
    trace_id: traceparent && traceIdOf(traceparent),
  }
}

export function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}

/**
 * How long ended calls are collected before they are counted, milliseconds, and how many at most.
 */
const GATHER_MS = 100
const GATHERED_MAX = 64

/**
 * Counts the calls that an API node answered, in batches. Counting them together costs a third of
 * counting each alone.
 */
export class EndedCalls {
  readonly #metrics: Metrics
  readonly #minutes: MinuteStats
  #calls: { call: EndedCall; isEndedByWorker: boolean }[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(metrics: Metrics, minutes: MinuteStats) {
    this.#metrics = metrics
    this.#minutes = minutes
    metrics.beforeRead(() => this.flush())
  }

  /**
   * @param isEndedByWorker whether the call is asynchronous, so that its worker ends and counts it
   */
  add(call: EndedCall, { isEndedByWorker }: { isEndedByWorker: boolean }): void {
    this.#calls.push({ call, isEndedByWorker })
    if (this.#calls.length >= GATHERED_MAX) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MS).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const calls = this.#calls
    this.#calls = []
    const counting = { metrics: this.#metrics, minutes: this.#minutes }
    for (const { call, isEndedByWorker } of calls) {
      const { slug, mode, totalMs } = call
      if (mode !== 'test') this.#metrics.callSeconds.observe({ slug }, totalMs / 1_000)
      if (!isEndedByWorker) countCall(counting, call)
    }
  }
}

/**
 * Counts a call in the metrics of this process and in the minutes of the fleet. Each call is
 * counted once, in the process that ended it.
 */
export function countCall({ metrics, minutes }: { metrics: Metrics; minutes: MinuteStats }, call: EndedCall): void {
  const { slug, mode, status, code = 'OK', times, cacheStatus } = call
  metrics.calls.inc({ slug, mode: mode ?? '-', status, code })
  // Test calls do not reach the upstreams, so they say nothing about the load there.
  if (mode === 'test') return
  minutes.add(call)
  if (!times) return
  metrics.queueSeconds.observe({ slug }, times.queueMs / 1_000)
  metrics.permitSeconds.observe({ slug }, times.permitMs / 1_000)
  if (showsUpstreamTime(call)) metrics.upstreamSeconds.observe({ slug }, times.upstreamMs / 1_000)
  if (cacheStatus !== undefined) metrics.cache.inc({ slug, result: cacheResult(cacheStatus) })
}

/**
 * Whether the time of a call says how fast the upstream is. It does not for a stored answer or a
 * failed connection.
 */
export function showsUpstreamTime({ times, reach }: Pick<EndedCall, 'times' | 'reach'>): boolean {
  return times !== undefined && times.attempts > 0 && reach !== undefined && hasReached(reach, 'sent')
}

/**
 * The cache result in a `Cache-Status` header. `ttl` is present if a stored answer was served. If
 * it is negative, the answer was stale, even if no request was sent for the call.
 */
export function cacheResult(cacheStatus: string): 'hit' | 'stale' | 'miss' {
  if (cacheStatus.includes('; ttl=-')) return 'stale'
  return cacheStatus.startsWith('agw; hit') ? 'hit' : 'miss'
}
