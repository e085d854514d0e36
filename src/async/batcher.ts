/** The items of a batch: at least one. */
export type Items<Item> = [Item, ...Item[]]

/** The items that wait under one key, and the promises of their callers in the same order. */
interface Gathered<Item, Result> {
  items: Items<Item>
  waiting: PromiseWithResolvers<Result>[]
}

/**
 * Ticks for which a busy process gathers, so that a call that comes a fraction of a millisecond
 * later still joins.
 */
const BUSY_TICKS = 3

interface BatcherOptions {
  /** Most items of one key that the batcher sends at once. Default: no bound. */
  itemsMax?: number
  /**
   * How long the batcher gathers, milliseconds. Default: until the end of the tick, or of the third
   * tick if it is busy.
   */
  gatherMs?: number
}

/**
 * Gathers the items that come under a key and sends them together: at the end of the event loop's
 * tick, at the end of the third tick if the last gathering brought more than one item, whatever
 * their keys, or after a fixed time. One message for a batch costs less than one message for each
 * item.
 */
export class Batcher<Item, Result = undefined> {
  readonly #send: (items: Items<Item>, key: string) => Promise<Result[]>
  readonly #itemsMax: number
  readonly #gatherMs: number
  readonly #underWay = new Set<Promise<void>>()
  readonly #pending = new Map<string, Gathered<Item, Result>>()
  #count = 0
  #isBusy = false

  /**
   * @param send answers with one result for each item, in order, or with none if nobody reads the
   *   results. If it fails, every item of the batch fails with its error.
   */
  constructor(
    send: (items: Items<Item>, key: string) => Promise<Result[]>,
    { itemsMax = Number.POSITIVE_INFINITY, gatherMs = 0 }: BatcherOptions = {},
  ) {
    this.#send = send
    this.#itemsMax = itemsMax
    this.#gatherMs = gatherMs
  }

  /** @throws what `send` throws for the item's batch */
  add(key: string, item: Item): Promise<Result> {
    const waiting = Promise.withResolvers<Result>()
    const gathered = this.#pending.get(key)
    if (gathered) {
      gathered.items.push(item)
      gathered.waiting.push(waiting)
    } else this.#pending.set(key, { items: [item], waiting: [waiting] })
    this.#count += 1
    if (this.#count === 1) {
      if (this.#gatherMs > 0) setTimeout(() => this.#flushAll(), this.#gatherMs).unref()
      else this.#flushIn(this.#isBusy ? BUSY_TICKS : 1)
    }
    // A full batch is sent at once.
    if ((gathered?.items.length ?? 1) >= this.#itemsMax) this.flush(key)
    return waiting.promise
  }

  /**
   * Sends the pending items of a key now, so that what the caller sends next arrives after them.
   */
  flush(key: string): void {
    const gathered = this.#pending.get(key)
    if (!gathered) return
    this.#pending.delete(key)
    const sending = this.#sendBatch(gathered, key).finally(() => this.#underWay.delete(sending))
    this.#underWay.add(sending)
  }

  /** Sends all pending items now. Resolves when every batch was sent or has failed. */
  async drain(): Promise<void> {
    do {
      this.#flushAll()
      await Promise.all(this.#underWay)
    } while (this.#pending.size > 0 || this.#underWay.size > 0)
  }

  #flushIn(ticks: number): void {
    setImmediate(() => {
      if (ticks > 1) this.#flushIn(ticks - 1)
      else this.#flushAll()
    })
  }

  #flushAll(): void {
    this.#isBusy = this.#count > 1
    this.#count = 0
    for (const key of [...this.#pending.keys()]) this.flush(key)
  }

  async #sendBatch({ items, waiting }: Gathered<Item, Result>, key: string): Promise<void> {
    try {
      const results = await this.#send(items, key)
      for (const [index, { resolve }] of waiting.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    }
  }
}
