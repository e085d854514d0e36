import { LRUCache } from 'lru-cache'
import { CALLER_LEFT, DEADLINE_PASSED } from '../errors/abort-reasons.ts'
import { type CallProgress, progressOf } from '../upstream/outcome.ts'

/**
 * How long the cancellation of an unknown call is kept, because it may have overtaken the job.
 * Milliseconds.
 */
const CANCEL_MS = 30_000
const CANCELS_MAX = 10_000

interface Run {
  ending: AbortController
  /** Who calls what; see `cancelWaiting`. */
  caller?: string | undefined
  progress?: CallProgress
}

/** The calls that run in this worker. Each has a signal that ends its run. */
export class RunningCalls {
  /** Number of running jobs: jobs of calls, probes and validations. The processor counts them. */
  jobs = 0
  readonly #running = new Map<string, Run>()
  readonly #cancelled = new LRUCache<string, true>({ max: CANCELS_MAX, ttl: CANCEL_MS })

  get calls(): number {
    return this.#running.size
  }

  /**
   * Begins the run of a call. Its signal is aborted after `forMs`, if the job is cancelled, or if
   * the caller leaves or has left. One controller and one timer: AbortSignal.timeout() and any()
   * cost several times as much on every call.
   *
   * @param cancelled is aborted if the lock of the job is lost
   * @returns the signal, and how to end the run
   */
  begin(
    callId: string,
    { forMs, cancelled, ...run }: { forMs: number; cancelled: AbortSignal } & Omit<Run, 'ending'>,
  ): { signal: AbortSignal; end: () => void } {
    const ending = new AbortController()
    const onCancelled = (): void => ending.abort(cancelled.reason)
    const timer = setTimeout(() => ending.abort(DEADLINE_PASSED), Math.max(0, Math.ceil(forMs)))
    cancelled.addEventListener('abort', onCancelled, { once: true })
    if (cancelled.aborted) onCancelled()
    this.#running.set(callId, { ...run, ending })
    if (this.#cancelled.has(callId)) ending.abort(CALLER_LEFT)
    return {
      signal: ending.signal,
      end: () => {
        clearTimeout(timer)
        cancelled.removeEventListener('abort', onCancelled)
        // A second run of the call may have begun.
        if (this.#running.get(callId)?.ending === ending) this.#running.delete(callId)
      },
    }
  }

  cancel(callId: string): void {
    const run = this.#running.get(callId)
    if (run) run.ending.abort(CALLER_LEFT)
    else this.#cancelled.set(callId, true)
  }

  /** Cancels the running calls of a caller, but not a call whose request is under way. */
  cancelWaiting(caller: string | undefined): void {
    if (caller === undefined) return
    for (const run of this.#running.values()) {
      const isUnderWay = run.progress && progressOf(run.progress).isUnderWay
      if (run.caller === caller && !isUnderWay) run.ending.abort(CALLER_LEFT)
    }
  }
}
