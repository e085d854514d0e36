/** Runs at most so many pieces of work at once; others wait in their order. */
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
      // The next call takes the place of this call.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running -= 1
    }
  }
}
