/**
 * Deduplicates concurrent work by key. If work for a key is already running, callers get its
 * promise.
 */
export class SingleFlight<Value> {
  readonly #underWay = new Map<string, Promise<Value>>()

  run(key: string, work: () => Promise<Value>): Promise<Value> {
    const known = this.#underWay.get(key)
    if (known) return known
    const underWay = (async () => await work())().finally(() => this.#underWay.delete(key))
    this.#underWay.set(key, underWay)
    return underWay
  }
}
