import { LRUCache } from 'lru-cache'
import { CALLER_LEFT } from '../upstream/call-end.ts'

/** How long a cancel is remembered whose call is not here yet: it may have overtaken the job. Milliseconds. */
const CANCEL_MS = 30_000
const CANCELS_MAX = 10_000

/** The jobs and calls that run in this worker. Each call can be cancelled by itself, whatever job it came in. */
export class RunningCalls {
  readonly #running = new Map<string, (reason: unknown) => void>()
  #jobs = 0
  readonly #cancelled = new LRUCache<string, true>({ max: CANCELS_MAX, ttl: CANCEL_MS })

  /** Calls under way. */
  get calls(): number {
    return this.#running.size
  }

  /** Jobs under way, probes and validations included. */
  get jobs(): number {
    return this.#jobs
  }

  /** Runs a job and counts it meanwhile. */
  async runJob(process: () => Promise<null>): Promise<null> {
    this.#jobs += 1
    try {
      return await process()
    } finally {
      this.#jobs -= 1
    }
  }

  /** Follows a call: `abort` is called when its caller leaves, at once where the caller left already. @returns how to stop */
  follow(callId: string, abort: (reason: unknown) => void): () => void {
    this.#running.set(callId, abort)
    if (this.#cancelled.has(callId)) abort(CALLER_LEFT)
    return () => {
      if (this.#running.get(callId) === abort) this.#running.delete(callId)
    }
  }

  /** Nobody waits for the call any more. */
  cancel(callId: string): void {
    const abort = this.#running.get(callId)
    if (abort) abort(CALLER_LEFT)
    else this.#cancelled.set(callId, true)
  }
}
