export interface MemoryShare {
  /**
   * Takes memory for more of an answer.
   * @returns undefined when it is there; else what settles once it is, and rejects with the signal's reason
   */
  take: (bytes: number, signal: AbortSignal) => Promise<void> | undefined
}

interface Holder {
  heldBytes: number
  waiting?: { bytes: number; enter: () => void; entered: Promise<void> } | undefined
}

/**
 * Bounds the memory that answers of upstreams take in a worker while they are read and parsed. The call that began to take
 * first always gets more, so that one of them ends whatever the others hold; those others share `bytesMax`.
 */
export class AnswerMemory {
  readonly #bytesMax: number
  #heldBytes = 0
  /** In the order in which they began to take. */
  readonly #holders = new Set<Holder>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Gives back what `run` took when it ends. */
  async within<T>(run: (share: MemoryShare) => Promise<T>): Promise<T> {
    const holder: Holder = { heldBytes: 0 }
    try {
      return await run({ take: (bytes, signal) => this.#take(holder, bytes, signal) })
    } finally {
      if (this.#holders.delete(holder)) {
        this.#heldBytes -= holder.heldBytes
        this.#admit()
      }
    }
  }

  #take(holder: Holder, bytes: number, signal: AbortSignal): Promise<void> | undefined {
    this.#holders.add(holder)
    // What was on its way when reading stopped: it comes in all the same when the connection is closed.
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
    const onAbort = (): void => {
      holder.waiting = undefined
      reject(signal.reason)
    }
    const enter = (): void => {
      holder.waiting = undefined
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
    holder.waiting = { bytes, enter, entered }
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    return entered
  }

  #mayHold(holder: Holder, bytes: number): boolean {
    const [first] = this.#holders
    return holder === first || this.#heldBytes - (first?.heldBytes ?? 0) + bytes <= this.#bytesMax
  }

  #hold(holder: Holder, bytes: number): void {
    holder.heldBytes += bytes
    this.#heldBytes += bytes
  }

  #admit(): void {
    for (const holder of this.#holders) {
      const { waiting } = holder
      if (!waiting || !this.#mayHold(holder, waiting.bytes)) continue
      this.#hold(holder, waiting.bytes)
      waiting.enter()
    }
  }
}
