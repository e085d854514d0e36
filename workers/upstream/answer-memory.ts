interface Wait {
  bytes: number
  since: number
  enter: () => void
  leave: (reason: Error) => void
  entered: Promise<void>
}

/**
 * Bounds the memory that answers of upstreams take in a worker while they are read and parsed. The
 * call that was the first to take memory always gets more, so that its answer ends whatever other
 * calls hold. The other calls share `bytesMax`.
 */
export class AnswerMemory {
  readonly bytesMax: number
  heldBytes = 0
  readonly sharesByAge = new Set<MemoryShare>()

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  mayHold(share: MemoryShare, bytes: number): boolean {
    const [first] = this.sharesByAge
    return share === first || this.heldBytes - (first?.heldBytes ?? 0) + bytes <= this.bytesMax
  }

  /** Lets in the answers that wait for memory and may have it now. */
  admit(): void {
    for (const share of this.sharesByAge) share.enter()
  }
}

/** What the answers of one call take, one after the other. */
export class MemoryShare {
  readonly #memory: AnswerMemory
  heldBytes = 0
  #endedWaitsMs = 0
  #waiting: Wait | undefined

  constructor(memory: AnswerMemory) {
    this.#memory = memory
  }

  /** How long the answers have waited so far, milliseconds. */
  get waitedMs(): number {
    return this.#endedWaitsMs + (this.#waiting ? performance.now() - this.#waiting.since : 0)
  }

  /**
   * Takes memory for more of an answer.
   *
   * @returns undefined if it got the memory; otherwise a promise that resolves when it has
   * @throws the signal's reason
   */
  take(bytes: number, signal: AbortSignal): Promise<void> | undefined {
    this.#memory.sharesByAge.add(this)
    // What was on its way when reading stopped: it comes in all the same when the connection is
    // closed.
    if (this.#waiting) {
      this.#waiting.bytes += bytes
      return this.#waiting.entered
    }
    if (!this.#memory.mayHold(this, bytes)) return this.#wait(bytes, signal)
    this.#hold(bytes)
    return undefined
  }

  /** The answer failed, or its call ended: gives back all that was taken, and ends the wait. */
  giveBack(): void {
    this.#waiting?.leave(new Error('the answer failed'))
    if (!this.#memory.sharesByAge.delete(this)) return
    this.#memory.heldBytes -= this.heldBytes
    this.heldBytes = 0
    this.#memory.admit()
  }

  /** Ends the wait if there is memory. */
  enter(): void {
    if (!this.#waiting || !this.#memory.mayHold(this, this.#waiting.bytes)) return
    this.#hold(this.#waiting.bytes)
    this.#waiting.enter()
  }

  #wait(bytes: number, signal: AbortSignal): Promise<void> {
    const { promise: entered, resolve, reject } = Promise.withResolvers<void>()
    const since = performance.now()
    const end = (): void => {
      this.#endedWaitsMs += performance.now() - since
      this.#waiting = undefined
      signal.removeEventListener('abort', onAbort)
    }
    const enter = (): void => {
      end()
      resolve()
    }
    const leave = (reason: Error): void => {
      end()
      reject(reason)
    }
    const onAbort = (): void => leave(signal.reason)
    this.#waiting = { bytes, since, enter, leave, entered }
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    return entered
  }

  #hold(bytes: number): void {
    this.heldBytes += bytes
    this.#memory.heldBytes += bytes
  }
}
