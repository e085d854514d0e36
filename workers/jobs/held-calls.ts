import type { Api } from '../../src/catalog/catalog.ts'

/**
 * Holds the calls of APIs that an operator paused with `hold`. The calls wait in their worker until
 * the API is resumed, or until they end.
 */
export class HeldCalls {
  readonly #looks = new Set<() => void>()

  /** Checks which calls may continue. Call it when the operators' settings may have changed. */
  look(): void {
    for (const look of [...this.#looks]) look()
  }

  /**
   * Waits while the calls of the API are held.
   * @throws the signal's reason
   */
  async wait(api: Pick<Api, 'pausedMode'>, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const look = (): void => {
      if (api.pausedMode !== 'hold') resolve()
    }
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#looks.add(look)
    look()
    try {
      signal.throwIfAborted()
      await promise
    } finally {
      this.#looks.delete(look)
      signal.removeEventListener('abort', onAbort)
    }
  }
}
