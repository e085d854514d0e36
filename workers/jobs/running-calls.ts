import { LRUCache } from 'lru-cache'
import { CALLER_LEFT } from '../errors/abort-reasons.ts'

/**
 * How long the cancellation of an unknown call is kept, because it may have overtaken the job.
 * Milliseconds.
 */
const CANCEL_MS = 30_000
const CANCELS_MAX = 10_000

/** The calls of this worker. Each can be cancelled separately. */
export class RunningCalls {
  readonly #running = new Map<string, (reason: unknown) => void>()
  #jobs = 0
  readonly #cancelled = new LRUCache<string, true>({ max: CANCELS_MAX, ttl: CANCEL_MS })

  get calls(): number {
    return this.#running.size
  }

  /** Number of running jobs: jobs of calls, probes and validations. */
  get jobs(): number {
    return this.#jobs
  }

  async runJob(process: () => Promise<null>): Promise<null> {
    this.#jobs += 1
    try {
      return await process()
    } finally {
      this.#jobs -= 1
    }
  }

  /**
   * Calls `abort` when the caller leaves, or has left.
   * @returns how to stop
   */
  onCancel(callId: string, abort: (reason: unknown) => void): () => void {
    this.#running.set(callId, abort)
    if (this.#cancelled.has(callId)) abort(CALLER_LEFT)
    return () => {
      if (this.#running.get(callId) === abort) this.#running.delete(callId)
    }
  }

  cancel(callId: string): void {
    const abort = this.#running.get(callId)
    if (abort) abort(CALLER_LEFT)
    else this.#cancelled.set(callId, true)
  }
}
