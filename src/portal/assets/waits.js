import { currentKey } from './key.js'
import { waitWords } from './words.js'

/**
 * While the plan's minute is used up, sending cannot succeed, so the buttons show how long. Each
 * credential waits separately, because another credential may still have calls.
 */
export class Waits {
  #sendAs
  #buttons
  /** End of the wait by credential, in the time of `performance.now`. */
  #ends = new Map()
  /** Buttons whose call is running. */
  #sending = new Set()
  #timer

  constructor(sendAs, buttons) {
    this.#sendAs = sendAs
    this.#buttons = buttons
  }

  chosen() {
    const kind = this.#sendAs.elements['send-as'].value
    return kind === 'key' ? `key ${currentKey()}` : kind
  }

  begin(button) {
    this.#sending.add(button)
    this.show()
  }

  end(button) {
    this.#sending.delete(button)
    this.show()
  }

  add(credential, seconds) {
    if (!(seconds > 0)) return
    this.#ends.set(credential, performance.now() + seconds * 1_000)
    this.#timer ??= setInterval(() => this.show(), 500)
    this.show()
  }

  show() {
    const now = performance.now()
    const leftMs = (this.#ends.get(this.chosen()) ?? 0) - now
    for (const button of this.#buttons) {
      button.disabled = leftMs > 0 || this.#sending.has(button)
      button.textContent = leftMs > 0 ? `Send in ${waitWords(Math.ceil(leftMs / 1_000))}` : 'Send'
    }
    if (this.#sendAs.isConnected && [...this.#ends.values()].some((end) => end > now)) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
