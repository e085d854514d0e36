import { rejectOnAbort } from '../../src/async/abort.ts'
import type { Api } from '../../src/catalog/catalog.ts'

/**
 * Holds the calls of APIs that an operator paused with `hold`. The calls wait in their worker until
 * the API is resumed, or until they end.
 */
export class HeldCalls {
  #next = Promise.withResolvers<void>()

  /** Checks which calls may continue. Call it when the operators' settings may have changed. */
  look(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers<void>()
  }

  /**
   * Waits while the calls of the API are held.
   * @throws the signal's reason
   */
  async wait(api: Pick<Api, 'pausedMode'>, signal: AbortSignal): Promise<void> {
    while (api.pausedMode === 'hold') await Promise.race([this.#next.promise, rejectOnAbort(signal)])
  }
}
