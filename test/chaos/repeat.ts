import { setTimeout as delay } from 'node:timers/promises'

/** Does something so many times, at most this often. */
export async function repeat(times: number, everyMs: number, fault: () => Promise<void>): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    const startedAt = performance.now()
    await fault()
    await delay(Math.max(0, everyMs - (performance.now() - startedAt)))
  }
}
