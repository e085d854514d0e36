import { setTimeout as delay } from 'node:timers/promises'

/** Runs `fault` a number of times, and begins a run at most every `everyMs`. */
export async function repeat(times: number, everyMs: number, fault: () => Promise<void>): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    const startedAt = performance.now()
    await fault()
    await delay(Math.max(0, everyMs - (performance.now() - startedAt)))
  }
}
