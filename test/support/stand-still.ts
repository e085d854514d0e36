/** Blocks the event loop for `ms`, as a busy machine or a long function does. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
