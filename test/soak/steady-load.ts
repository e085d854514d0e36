import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { OutcomeTimes, SteadyRequest } from './steady-load-process.ts'

/** The outcome of calls that were sent at a steady rate. */
export interface SteadyResult {
  sent: number
  /** From the first call to the last answer. */
  seconds: number
  /** By status and code, such as `200` or `503 OVERLOADED`. */
  outcomes: Record<string, OutcomeTimes>
}

/**
 * A client in a process of its own, which sends a fixed number of calls a second, even if calls
 * fail.
 */
export class SteadyLoad {
  readonly #child: ChildProcess

  constructor() {
    this.#child = fork(new URL('steady-load-process.ts', import.meta.url), { execArgv: [] })
  }

  async offer(request: SteadyRequest): Promise<SteadyResult> {
    this.#child.send(request)
    const [result] = await once(this.#child, 'message')
    return result as SteadyResult
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }
}
