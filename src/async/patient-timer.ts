/**
 * How often the timer checks, milliseconds. If the event loop stands still, at most two steps
 * count.
 */
const STEP_MS = 50

/**
 * A time limit for an answer from outside. It counts only time in which this process could have
 * read the answer: a standstill of the event loop counts as two steps at most, however long it
 * lasts. A plain timer would end the wait in the first tick after a standstill, before the process
 * reads an answer that has arrived meanwhile. After the last step the event loop reads its sockets
 * once more before the wait ends.
 */
export class PatientTimer {
  #countedMs = 0
  #steppedAt = performance.now()
  #timer: NodeJS.Timeout | undefined
  #immediate: NodeJS.Immediate | undefined

  constructor(timeoutMs: number, onEnd: () => void) {
    const step = (): void => {
      this.#timer = setTimeout(
        () => {
          this.#countedMs = this.countedMs
          this.#steppedAt = performance.now()
          if (this.#countedMs < timeoutMs) step()
          else this.#immediate = setImmediate(onEnd)
        },
        Math.max(1, Math.min(STEP_MS, Math.ceil(timeoutMs - this.#countedMs))),
      )
    }
    step()
  }

  /** Milliseconds counted so far. */
  get countedMs(): number {
    return this.#countedMs + Math.min(performance.now() - this.#steppedAt, 2 * STEP_MS)
  }

  end(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#immediate)
  }
}
