/** Runs work that is wanted several times at once only once: all that ask while it is under way share its outcome. */
export class SingleFlight<Value> {
  readonly #underWay = new Map<string, Promise<Value>>()

  run(key: string, work: () => Promise<Value>): Promise<Value> {
    const known = this.#underWay.get(key)
    if (known) return known
    const underWay = this.#finish(key, work)
    this.#underWay.set(key, underWay)
    return underWay
  }

  async #finish(key: string, work: () => Promise<Value>): Promise<Value> {
    try {
      return await work()
    } finally {
      this.#underWay.delete(key)
    }
  }
}
