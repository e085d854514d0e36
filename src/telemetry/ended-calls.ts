import type { CallJob } from '../queue/call-job.ts'
import type { ReplyHead } from '../queue/reply-head.ts'
import type { Metrics } from './metrics.ts'
import type { MinuteStats } from './minute-stats.ts'

/** A call that has ended. */
export interface EndedCall {
  slug: string
  /** Undefined for a call whose credential is not known. */
  mode: CallJob['mode'] | undefined
  status: number
  /** `OK` or a code of the error table. */
  code: string
  accountId: string | undefined
  times?: ReplyHead['times'] | undefined
  cacheStatus?: string | undefined
}

/**
 * How long ended calls are gathered before they are counted, milliseconds, and how many at most.
 */
const GATHER_MS = 100
const GATHERED_MAX = 64

/** A call that an API node answered. */
export interface AnsweredCall {
  call: EndedCall
  /** From request to answer, milliseconds. */
  answerMs: number
  /** Its worker counts an asynchronous call, when it has ended. */
  isCountedHere: boolean
}

/**
 * Counts the calls that an API node answered, many one after the other: together they cost a third
 * of what they cost alone.
 */
export class EndedCalls {
  readonly #metrics: Metrics
  readonly #minutes: MinuteStats
  #calls: AnsweredCall[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(metrics: Metrics, minutes: MinuteStats) {
    this.#metrics = metrics
    this.#minutes = minutes
    metrics.beforeRead(() => this.flush())
  }

  add(call: AnsweredCall): void {
    this.#calls.push(call)
    if (this.#calls.length >= GATHERED_MAX) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MS).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const calls = this.#calls
    this.#calls = []
    const counting = { metrics: this.#metrics, minutes: this.#minutes }
    for (const { call, answerMs, isCountedHere } of calls) {
      const { slug, mode } = call
      if (mode !== 'test') this.#metrics.callSeconds.observe({ slug }, answerMs / 1_000)
      if (isCountedHere) countCall(counting, call)
    }
  }
}

/**
 * Counts a call in the metrics of its process and in the minutes of the fleet, once, in the process
 * that ended it.
 */
export function countCall({ metrics, minutes }: { metrics: Metrics; minutes: MinuteStats }, call: EndedCall): void {
  const { slug, mode, status, code, accountId, times, cacheStatus } = call
  metrics.calls.inc({ slug, mode: mode ?? '-', status, code })
  // What test keys do says nothing of the service's load at its upstreams.
  if (mode === 'test') return
  const upstreamMs = upstreamMsOf(times)
  minutes.add({ slug, code, accountId, status, queueMs: times?.queueMs, upstreamMs })
  if (!times) return
  metrics.queueSeconds.observe({ slug }, times.queueMs / 1_000)
  metrics.permitSeconds.observe({ slug }, times.permitMs / 1_000)
  if (upstreamMs !== undefined) metrics.upstreamSeconds.observe({ slug }, upstreamMs / 1_000)
  if (cacheStatus !== undefined) metrics.cache.inc({ slug, result: cacheResult(cacheStatus) })
}

/** Undefined for a call that no attempt was made for: a cached answer is not a fast upstream. */
function upstreamMsOf(times: ReplyHead['times'] | undefined): number | undefined {
  return times && times.attempts > 0 ? times.upstreamMs : undefined
}

/**
 * `ttl` is there if a stored answer was served. Below 0 its time was over, whether its upstream was
 * asked or not.
 */
export function cacheResult(cacheStatus: string): 'hit' | 'stale' | 'miss' {
  if (cacheStatus.includes('; ttl=-')) return 'stale'
  return cacheStatus.startsWith('agw; hit') ? 'hit' : 'miss'
}
