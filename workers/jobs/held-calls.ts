import type { Api } from '../../src/catalog/catalog.ts'

/**
 * Calls of APIs whose calls an operator holds: they wait in their worker until the API goes on, or
 * until they end.
 */
export class HeldCalls {
  readonly #looks = new Set<() => void>()

  /** Looks which calls may go on. To be called when the operators' settings may have changed. */
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
