import { SingleFlight } from '../async/single-flight.ts'

/** How often the state is compared, milliseconds. */
const LOOK_MS = 200

/**
 * Longest age of what a page shows besides the state, such as the history of a day. Milliseconds.
 */
const KEPT_MS_MAX = 15_000

/**
 * Keeps what is rendered from a state that everybody sees, until the state changes, so that any
 * number of readers costs one rendering. A change of the state shows within 0.2 seconds. Other
 * changes show within 15 seconds.
 */
export class Renderings<Value> {
  readonly #stateOf: () => string
  readonly #renderings = new SingleFlight<Value>()
  readonly #kept = new Map<string, Value>()
  #state = ''
  #lookedAt = Number.NEGATIVE_INFINITY
  #clearedAt = Number.NEGATIVE_INFINITY

  /**
   * @param stateOf returns a text that changes when the rendered state changes. Keys of `get` must
   *   be few, and never a caller's text.
   */
  constructor(stateOf: () => string) {
    this.#stateOf = stateOf
  }

  async get(key: string, render: () => Value | Promise<Value>): Promise<Value> {
    this.#look()
    const kept = this.#kept.get(key)
    if (kept !== undefined) return kept
    const state = this.#state
    return await this.#renderings.run(`${key} ${state}`, async () => {
      const value = await render()
      if (state === this.#state) this.#kept.set(key, value)
      return value
    })
  }

  #look(): void {
    const now = performance.now()
    if (now - this.#lookedAt < LOOK_MS) return
    this.#lookedAt = now
    const state = this.#stateOf()
    if (state === this.#state && now - this.#clearedAt < KEPT_MS_MAX) return
    this.#state = state
    this.#clearedAt = now
    this.#kept.clear()
  }
}
