/** Runs at most a fixed number of pieces of work at once. The others wait in their order. */
export class Concurrency {
  readonly #max: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(max: number) {
    this.#max = max
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#max) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running += 1
    try {
      return await work()
    } finally {
      // The next piece of work takes the place of this piece.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running -= 1
    }
  }
}
