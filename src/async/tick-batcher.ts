interface Waiting<Item, Result> {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/** Ticks for which a busy process gathers: under load a call that comes a fraction of a millisecond later still joins. */
const BUSY_TICKS = 3

/**
 * Gathers what comes under a key and sends it together at the end of the tick of the event loop, or of the third tick where
 * the last gathering brought more than one item. Costs one message for a batch's items instead of one each.
 */
export class TickBatcher<Item, Result> {
  readonly #send: (key: string, items: Item[]) => Promise<Result[]>
  readonly #itemsMax: number
  #pending = new Map<string, Waiting<Item, Result>[]>()
  #count = 0
  #isBusy = false

  /** `send` answers with one result for each item, in order; when it fails, every item of the batch fails with its error. */
  constructor(send: (key: string, items: Item[]) => Promise<Result[]>, { itemsMax }: { itemsMax: number }) {
    this.#send = send
    this.#itemsMax = itemsMax
  }

  /** @throws what `send` throws for the item's batch */
  add(key: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      const waiting = { item, resolve, reject }
      const pending = this.#pending.get(key) ?? []
      pending.push(waiting)
      this.#count += 1
      if (this.#count === 1) this.#flushAfter(this.#isBusy ? BUSY_TICKS : 1)
      if (pending.length < this.#itemsMax) {
        this.#pending.set(key, pending)
        return
      }
      // A full batch waits for nothing.
      this.#pending.delete(key)
      void this.#sendBatch(key, pending)
    })
  }

  #flushAfter(ticks: number): void {
    setImmediate(() => {
      if (ticks > 1) this.#flushAfter(ticks - 1)
      else this.#flush()
    })
  }

  #flush(): void {
    const gathered = this.#pending
    this.#pending = new Map()
    this.#isBusy = this.#count > 1
    this.#count = 0
    for (const [key, items] of gathered) void this.#sendBatch(key, items)
  }

  async #sendBatch(key: string, batch: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#send(
        key,
        batch.map(({ item }) => item),
      )
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}
