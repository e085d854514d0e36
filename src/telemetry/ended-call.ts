import type { PlanLimits } from '../config.ts'
import type { ErrorCode } from '../errors.ts'
import type { CallJob, CallOrigin } from '../queue/call-job.ts'
import type { CallTimes } from '../queue/reply-head.ts'
import { hasReached, type Reach } from '../queue/verdict.ts'
import type { Metrics } from './metrics.ts'
import type { MinuteStats } from './minute-stats.ts'
import { traceIdOf } from './tracing.ts'

/** How a call came; not known of an asynchronous call of a version that does not say it. */
type Origin = { [member in keyof CallOrigin]?: CallOrigin[member] | undefined }

/**
 * A call that has ended: metrics, counts per minute, trace, log line and row are made of this
 * value. It never has parameters or bodies, nor an address.
 */
export interface EndedCall extends Origin {
  /** `call_…`; absent for a call that was refused before it had an id. */
  id?: string | undefined
  /** Undefined for a call whose credential is not known, as `mode`: such a call has no row. */
  accountId: string | undefined
  keyId?: string | undefined
  mode: CallJob['mode'] | undefined
  /** Of the catalog, or `-`. */
  slug: string
  /** Of the catalog. */
  endpoint?: string | undefined
  status: number
  /** Absent for a success. */
  code?: ErrorCode | undefined
  /** Why the upstream failed, in words of `failure-words.ts`. */
  cause?: string | undefined
  /** Absent if no worker ran it. */
  times?: CallTimes | undefined
  /** How far its requests got; absent if no worker ran it. */
  reach?: Reach | undefined
  /** From request to answer; of an asynchronous call from its limits to its end. Milliseconds. */
  totalMs: number
  /** The header `Cache-Status`. */
  cacheStatus?: string | undefined
  bytes?: number | undefined
  /**
   * Plan of an account whose call was refused before it was queued. Such a call is free, so its
   * rows are bounded.
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
    // As OpenTelemetry names it in logs.
    trace_id: traceparent && traceIdOf(traceparent),
  }
}

export function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}

/**
 * How long ended calls are gathered before they are counted, milliseconds, and how many at most.
 */
const GATHER_MS = 100
const GATHERED_MAX = 64

/**
 * Counts the calls that an API node answered, many one after the other: together they cost a third
 * of what they cost alone.
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

  /** `isEndedByWorker`: an asynchronous call, which its worker counts when it ends it. */
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
 * Counts a call in the metrics of its process and in the minutes of the fleet, once, in the process
 * that ended it.
 */
export function countCall({ metrics, minutes }: { metrics: Metrics; minutes: MinuteStats }, call: EndedCall): void {
  const { slug, mode, status, code = 'OK', times, cacheStatus } = call
  metrics.calls.inc({ slug, mode: mode ?? '-', status, code })
  // What test keys do says nothing of the service's load at its upstreams.
  if (mode === 'test') return
  minutes.add(call)
  if (!times) return
  metrics.queueSeconds.observe({ slug }, times.queueMs / 1_000)
  metrics.permitSeconds.observe({ slug }, times.permitMs / 1_000)
  if (tookTimeOfUpstream(call)) metrics.upstreamSeconds.observe({ slug }, times.upstreamMs / 1_000)
  if (cacheStatus !== undefined) metrics.cache.inc({ slug, result: cacheResult(cacheStatus) })
}

/**
 * Whether its time at the upstream says how fast the upstream is: neither a stored answer nor a
 * failed connection is a fast upstream.
 */
export function tookTimeOfUpstream({ times, reach }: Pick<EndedCall, 'times' | 'reach'>): boolean {
  return times !== undefined && times.attempts > 0 && reach !== undefined && hasReached(reach, 'sent')
}

/**
 * `ttl` is there if a stored answer was served. Below 0 the answer was stale, even if no request
 * was sent for the call.
 */
export function cacheResult(cacheStatus: string): 'hit' | 'stale' | 'miss' {
  if (cacheStatus.includes('; ttl=-')) return 'stale'
  return cacheStatus.startsWith('agw; hit') ? 'hit' : 'miss'
}
