import { setTimeout as delay } from 'node:timers/promises'

export interface BatcherOptions {
  /** Pause between two messages of one key, milliseconds. Default: 0, the next follows when the last is done. */
  pauseMs?: number
}

/**
 * Micro-batching by key: an item is sent at once while nothing is under way for its key; what comes meanwhile is sent
 * together as soon as that is done and the pause is over.
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
    this.#pending.set(key, [])
    this.#follow(this.#sendAll(key, [item]))
  }

  /** Sends what is left without further pauses. Resolves when everything is sent. */
  async drain(): Promise<void> {
    this.#closing.abort()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  /** Sends what is pending under a key now: what is sent next comes after it. */
  flush(key: string): void {
    const items = this.#pending.get(key)?.splice(0) ?? []
    if (items.length > 0) this.#follow(this.#send(key, items))
  }

  #follow(sending: Promise<void>): void {
    const followed = sending.finally(() => this.#underWay.delete(followed))
    this.#underWay.add(followed)
  }

  async #sendAll(key: string, first: Item[]): Promise<void> {
    for (let items = first; items.length > 0; items = this.#pending.get(key)?.splice(0) ?? []) {
      await this.#send(key, items)
      if (this.#pauseMs > 0) await this.#pause()
    }
    this.#pending.delete(key)
  }

  async #pause(): Promise<void> {
    const { signal } = this.#closing
    if (!signal.aborted) await delay(this.#pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}
