export interface MemoryShare {
  /**
   * Takes memory for more of an answer.
   * @returns undefined when it is there; else what settles once it is, and rejects with the signal's reason
   */
  take: (bytes: number, signal: AbortSignal) => Promise<void> | undefined
}

interface Holder {
  heldBytes: number
  waiting?: { bytes: number; enter: () => void } | undefined
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
    if (this.#mayHold(holder, bytes)) {
      this.#hold(holder, bytes)
      return undefined
    }
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        holder.waiting = undefined
        reject(signal.reason)
      }
      const enter = (): void => {
        holder.waiting = undefined
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      if (signal.aborted) return onAbort()
      signal.addEventListener('abort', onAbort, { once: true })
      holder.waiting = { bytes, enter }
    })
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
