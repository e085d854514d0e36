import { countCall, type EndedCall } from './count-call.ts'
import type { Metrics } from './metrics.ts'
import type { MinuteStats } from './minute-stats.ts'

/** Longest time that an ended call is not counted, milliseconds, and most calls that are not. */
const GATHER_MS = 100
const GATHERED_MAX = 64

/** A call that an API node answered. */
export interface AnsweredCall {
  call: EndedCall
  /** From request to answer, milliseconds. */
  answerMs: number
  /** Its worker counts an asynchronous call, when it has ended. */
  isCountedHere: boolean
}

/**
 * Counts the calls that an API node answered, many one after the other: together they cost a third
 * of what they cost alone.
 */
export class EndedCalls {
  readonly #metrics: Metrics
  readonly #minutes: MinuteStats
  #calls: AnsweredCall[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(metrics: Metrics, minutes: MinuteStats) {
    this.#metrics = metrics
    this.#minutes = minutes
    metrics.beforeRead(() => this.flush())
  }

  add(call: AnsweredCall): void {
    this.#calls.push(call)
    if (this.#calls.length >= GATHERED_MAX) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MS).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const calls = this.#calls
    this.#calls = []
    const counting = { metrics: this.#metrics, minutes: this.#minutes }
    for (const { call, answerMs, isCountedHere } of calls) {
      const { slug, mode } = call
      if (mode !== 'test') this.#metrics.callSeconds.observe({ slug }, answerMs / 1_000)
      if (isCountedHere) countCall(counting, call)
    }
  }
}
