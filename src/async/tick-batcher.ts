interface Waiting<Item, Result> {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Gathers what comes under a key within one tick of the event loop and sends it together at the tick's end. What comes
 * alone waits for nothing else. Costs one message for a tick's items instead of one each.
 */
export class TickBatcher<Item, Result> {
  readonly #send: (key: string, items: Item[]) => Promise<Result[]>
  readonly #itemsMax: number
  readonly #pending = new Map<string, Waiting<Item, Result>[]>()

  /** `send` answers with one result for each item, in order; when it fails, every item of the batch fails with its error. */
  constructor(send: (key: string, items: Item[]) => Promise<Result[]>, { itemsMax }: { itemsMax: number }) {
    this.#send = send
    this.#itemsMax = itemsMax
  }

  /** @throws what `send` throws for the item's batch */
  add(key: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      const waiting = { item, resolve, reject }
      const pending = this.#pending.get(key)
      if (pending) {
        pending.push(waiting)
        return
      }
      this.#pending.set(key, [waiting])
      setImmediate(() => this.#flush(key))
    })
  }

  #flush(key: string): void {
    const pending = this.#pending.get(key) ?? []
    this.#pending.delete(key)
    for (let start = 0; start < pending.length; start += this.#itemsMax) {
      void this.#sendBatch(key, pending.slice(start, start + this.#itemsMax))
    }
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
