interface Waiting<Item, Result> {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Gathers what comes under a key within one turn of the event loop and sends it together at the turn's end. What comes
 * alone waits for nothing else. Costs one message for a turn's items instead of one each.
 */
export class TickBatcher<Item, Result> {
  readonly #send: (key: string, items: Item[]) => Promise<Result[]>
  readonly #itemsMax: number
  readonly #gathered = new Map<string, Waiting<Item, Result>[]>()

  /** `send` answers with one result for each item, in order; when it fails, every item of the batch fails with its error. */
  constructor(send: (key: string, items: Item[]) => Promise<Result[]>, { itemsMax }: { itemsMax: number }) {
    this.#send = send
    this.#itemsMax = itemsMax
  }

  /** @throws what `send` throws for the item's batch */
  add(key: string, item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      const waiting = { item, resolve, reject }
      const gathered = this.#gathered.get(key)
      if (gathered) {
        gathered.push(waiting)
        return
      }
      this.#gathered.set(key, [waiting])
      setImmediate(() => this.#flush(key))
    })
  }

  #flush(key: string): void {
    const gathered = this.#gathered.get(key) ?? []
    this.#gathered.delete(key)
    for (let start = 0; start < gathered.length; start += this.#itemsMax) {
      void this.#sendBatch(key, gathered.slice(start, start + this.#itemsMax))
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
