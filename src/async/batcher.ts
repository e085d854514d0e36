import { setTimeout as delay } from 'node:timers/promises'

export interface BatcherOptions {
  /** Pause between two messages of one key, milliseconds. Default: 0, the next follows when the last is done. */
  pauseMs?: number
}

/**
 * Micro-batching by key: the first items are sent together at the end of the current tick; those that come while a message is
 * under way follow together when it is done and the pause is over.
 */
export class Batcher<Item> {
  readonly #send: (key: string, items: Item[]) => Promise<void>
  readonly #pauseMs: number
  /** What is pending under each key for which something is under way. */
  readonly #pending = new Map<string, Item[]>()
  readonly #underWay = new Set<Promise<void>>()
  readonly #closing = new AbortController()

  /** `send` handles its own failures. */
  constructor(send: (key: string, items: Item[]) => Promise<void>, { pauseMs = 0 }: BatcherOptions = {}) {
    this.#send = send
    this.#pauseMs = pauseMs
  }

  add(key: string, item: Item): void {
    const pending = this.#pending.get(key)
    if (pending) {
      pending.push(item)
      return
    }
    this.#pending.set(key, [item])
    this.#follow(this.#sendAll(key))
  }

  /** Sends what is left without further pauses. Resolves when everything is sent. */
  async drain(): Promise<void> {
    this.#closing.abort()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  /** Sends what is pending under a key now: what is sent next comes after it. */
  flush(key: string): void {
    const items = this.#take(key)
    if (items.length > 0) this.#follow(this.#send(key, items))
  }

  #follow(sending: Promise<void>): void {
    const followed = sending.finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }

  async #sendAll(key: string): Promise<void> {
    // What is resolved together adds its items one after the other, before this goes on.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    for (let items = this.#take(key); items.length > 0; items = this.#take(key)) {
      await this.#send(key, items)
      if (this.#pauseMs > 0) await this.#pause()
    }
    this.#pending.delete(key)
  }

  #take(key: string): Item[] {
    return this.#pending.get(key)?.splice(0) ?? []
  }

  async #pause(): Promise<void> {
    const { signal } = this.#closing
    if (!signal.aborted) await delay(this.#pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}
