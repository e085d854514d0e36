/**
 * Most requests of one client that begin in one turn of the event loop, some tens of milliseconds
 * of work.
 */
const REQUESTS_MAX = 128

interface Turn {
  begun: number
  waiting: (() => void)[]
}

/**
 * Divides the turns of the event loop among clients. Node handles everything that has arrived in
 * one turn. If one client sent four thousand requests at once, nobody else would be served for a
 * second.
 */
export class FairTurns {
  readonly #turns = new Map<object, Turn>()
  #isScheduled = false

  /**
   * @returns whether a client may begin another request in this turn. If not, `resume` is called in
   *   a later turn.
   */
  mayBegin(client: object, resume: () => void): boolean {
    const turn = this.#turns.get(client)
    if (turn === undefined || turn.begun < REQUESTS_MAX) return true
    turn.waiting.push(resume)
    return false
  }

  /** Counts requests that a client has begun in this turn. */
  begin(client: object, count: number): void {
    const turn = this.#turns.get(client)
    if (turn) turn.begun += count
    else this.#turns.set(client, { begun: count, waiting: [] })
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#end())
  }

  #end(): void {
    this.#isScheduled = false
    for (const [client, turn] of [...this.#turns]) {
      if (turn.waiting.length === 0) this.#turns.delete(client)
      else {
        turn.begun = 0
        for (const resume of turn.waiting.splice(0, REQUESTS_MAX)) resume()
      }
    }
    if (this.#turns.size > 0) this.#schedule()
  }
}
