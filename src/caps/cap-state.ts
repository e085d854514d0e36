/** A cap as it is now. */
export interface CapState {
  /**
   * Calls in the queue, or calls before the call in question or before the call whose answer it
   * shares; -1 if neither is queued.
   */
  ahead: number
  nextSlotMs: number
  underWay: number
  free: number
  /**
   * For how long the upstream itself takes no request, as far as it is believed; 0: it takes them.
   */
  limitedMs: number
  /** Of each rate, in the cap's order. */
  left: number[]
}

/** @param reply what `read.lua` returns */
export function capStateOf([
  ahead = 0,
  nextSlotMs = 0,
  underWay = 0,
  free = 0,
  limitedMs = 0,
  ...left
]: number[]): CapState {
  return { ahead, nextSlotMs, underWay, free, limitedMs, left }
}
