/**
 * Sends what gathers under a key: at once while nothing is under way for it, else all that has gathered as soon as that
 * is done. A busy key so costs one message for many items, a quiet one no waiting.
 */
export class Batcher<Item> {
  readonly #send: (key: string, items: Item[]) => Promise<void>
  /** What has gathered under each key for which something is under way. */
  readonly #gathered = new Map<string, Item[]>()

  readonly #underWay = new Set<Promise<void>>()

  /** `send` sees to its own failures. */
  constructor(send: (key: string, items: Item[]) => Promise<void>) {
    this.#send = send
  }

  add(key: string, item: Item): void {
    const gathered = this.#gathered.get(key)
    if (gathered) {
      gathered.push(item)
      return
    }
    this.#gathered.set(key, [])
    this.#follow(this.#drain(key, [item]))
  }

  /** Resolves when everything is sent. */
  async sent(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  /** Sends what has gathered under a key now: what is sent next comes after it. */
  flush(key: string): void {
    const items = this.#gathered.get(key)?.splice(0) ?? []
    if (items.length > 0) this.#follow(this.#send(key, items))
  }

  #follow(sending: Promise<void>): void {
    const followed = sending.finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }

  async #drain(key: string, first: Item[]): Promise<void> {
    for (let items = first; items.length > 0; items = this.#gathered.get(key)?.splice(0) ?? []) {
      await this.#send(key, items)
    }
    this.#gathered.delete(key)
  }
}
