/** Too much work of this key is waiting. */
export class TooManyWaitingError extends Error {
  constructor() {
    super('too much work waits for its turn')
    this.name = 'TooManyWaitingError'
  }
}

/**
 * Runs the work of each key one piece after the other, in the order of arrival. Different keys do
 * not wait for each other.
 */
export class OneAtATime {
  readonly #waitingMax: number
  readonly #queues = new Map<string, { last: Promise<unknown>; count: number }>()

  /** @param waitingMax how much work of one key may wait behind the work that runs */
  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax
  }

  /**
   * @throws TooManyWaitingError at once if too much work of the key is waiting; also what `work`
   *   throws
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(key) ?? { last: Promise.resolve(), count: 0 }
    if (queue.count > this.#waitingMax) throw new TooManyWaitingError()
    queue.count += 1
    this.#queues.set(key, queue)
    const running = queue.last.then(work)
    queue.last = running.catch(() => undefined)
    try {
      return await running
    } finally {
      queue.count -= 1
      if (queue.count === 0) this.#queues.delete(key)
    }
  }
}
