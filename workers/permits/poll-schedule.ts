export interface PollScheduleDeps {
  /** Never rejects. @returns how long to wait for the next poll, milliseconds */
  poll: () => Promise<number>
  /**
   * What is done after a poll that returned this pause, if nobody asked for another poll meanwhile.
   *
   * @returns the pause before the next poll, milliseconds; undefined if no poll is needed
   */
  pauseAfter: (pauseMs: number) => number | undefined
}

/** When a worker polls Redis for the permits of one cap: one poll at a time. */
export class PollSchedule {
  readonly #deps: PollScheduleDeps
  #isPolling = false
  #pollAgain = false
  #timer: NodeJS.Timeout | undefined

  constructor(deps: PollScheduleDeps) {
    this.#deps = deps
  }

  get isPolling(): boolean {
    return this.#isPolling
  }

  /**
   * Polls at the end of this tick, so that the waiters and released permits of one tick go into one
   * poll; if a poll is under way, directly after it.
   */
  pollSoon(): void {
    this.stop()
    if (this.#isPolling) {
      this.#pollAgain = true
      return
    }
    this.#isPolling = true
    setImmediate(() => this.#run())
  }

  pollIn(pauseMs: number): void {
    this.stop()
    this.#timer = setTimeout(() => this.pollSoon(), pauseMs)
  }

  /** Forgets the poll that is due later. */
  stop(): void {
    clearTimeout(this.#timer)
  }

  #run(): void {
    this.#pollAgain = false
    this.#deps.poll().then((pauseMs) => {
      this.#isPolling = false
      if (this.#pollAgain) {
        this.pollSoon()
        return
      }
      const nextMs = this.#deps.pauseAfter(pauseMs)
      if (nextMs !== undefined) this.pollIn(nextMs)
    })
  }
}
