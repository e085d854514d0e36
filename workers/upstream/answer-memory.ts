export interface MemoryShare {
  /**
   * For more of an answer.
   *
   * @returns undefined if it is there; else what settles once it is.
   * @throws the signal's reason
   */
  take: (bytes: number, signal: AbortSignal) => Promise<void> | undefined
  /** The answer failed: gives back all that was taken for it and ends its wait, if it waits. */
  giveBack: () => void
  /** How long it has waited so far, milliseconds. */
  waitedMs: () => number
}

interface Holder {
  heldBytes: number
  endedWaitsMs: number
  waiting?:
    | { bytes: number; since: number; enter: () => void; leave: (reason: Error) => void; entered: Promise<void> }
    | undefined
}

/**
 * Bounds the memory that answers of upstreams take in a worker while they are read and parsed. The
 * call that began to take first always gets more, so that this answer ends whatever the others
 * hold; those others share `bytesMax`.
 */
export class AnswerMemory {
  readonly #bytesMax: number
  #heldBytes = 0
  readonly #holdersByAge = new Set<Holder>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Gives back what `run` took when it ends. */
  async within<T>(run: (share: MemoryShare) => Promise<T>): Promise<T> {
    const holder: Holder = { heldBytes: 0, endedWaitsMs: 0 }
    try {
      return await run({
        take: (bytes, signal) => this.#take(holder, bytes, signal),
        giveBack: () => this.#giveBack(holder),
        waitedMs: () => holder.endedWaitsMs + (holder.waiting ? performance.now() - holder.waiting.since : 0),
      })
    } finally {
      if (this.#holdersByAge.has(holder)) this.#giveBack(holder)
    }
  }

  #giveBack(holder: Holder): void {
    holder.waiting?.leave(new Error('the answer failed'))
    if (!this.#holdersByAge.delete(holder)) return
    this.#heldBytes -= holder.heldBytes
    holder.heldBytes = 0
    this.#admit()
  }

  #take(holder: Holder, bytes: number, signal: AbortSignal): Promise<void> | undefined {
    this.#holdersByAge.add(holder)
    // What was on its way when reading stopped: it comes in all the same when the connection is
    // closed.
    if (holder.waiting) {
      holder.waiting.bytes += bytes
      return holder.waiting.entered
    }
    if (this.#mayHold(holder, bytes)) {
      this.#hold(holder, bytes)
      return undefined
    }
    return this.#wait(holder, bytes, signal)
  }

  #wait(holder: Holder, bytes: number, signal: AbortSignal): Promise<void> {
    const { promise: entered, resolve, reject } = Promise.withResolvers<void>()
    const since = performance.now()
    const end = (): void => {
      holder.endedWaitsMs += performance.now() - since
      holder.waiting = undefined
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
    holder.waiting = { bytes, since, enter, leave, entered }
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    return entered
  }

  #mayHold(holder: Holder, bytes: number): boolean {
    const [first] = this.#holdersByAge
    return holder === first || this.#heldBytes - (first?.heldBytes ?? 0) + bytes <= this.#bytesMax
  }

  #hold(holder: Holder, bytes: number): void {
    holder.heldBytes += bytes
    this.#heldBytes += bytes
  }

  #admit(): void {
    for (const holder of this.#holdersByAge) {
      const { waiting } = holder
      if (!waiting || !this.#mayHold(holder, waiting.bytes)) continue
      this.#hold(holder, waiting.bytes)
      waiting.enter()
    }
  }
}
