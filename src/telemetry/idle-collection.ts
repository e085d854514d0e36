import { Session } from 'node:inspector/promises'
import { performance } from 'node:perf_hooks'
import type { Log } from '../log.ts'

const LOOK_EVERY_MS = 10_000

/**
 * If the event loop of a process is busy for less than this part of the time, the process is idle,
 * and a pause delays hardly any call.
 */
const IDLE_PART = 0.05

/**
 * Checks in a row that must find the process idle before it collects. A full collection also drops
 * compiled code, which the process needs when it is busy.
 */
const IDLE_LOOKS_MIN = 3

/** Garbage is collected if memory has grown by this factor since the last collection. */
const GROWTH = 1.3

/**
 * Frees memory after a burst. V8 collects garbage only while memory is allocated, so a process that
 * becomes idle after many large bodies would keep them as long as it is idle. An idle process that
 * has grown therefore collects once.
 *
 * @returns stops the checks
 */
export function collectWhenIdle(log: Log): () => void {
  let last = performance.eventLoopUtilization()
  let collectedBytes = 0
  let idleLooks = 0
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    const bytes = process.memoryUsage.rss()
    idleLooks = utilization > IDLE_PART ? 0 : idleLooks + 1
    if (idleLooks < IDLE_LOOKS_MIN || bytes < collectedBytes * GROWTH) return
    // Set first, so that a failed collection is repeated only after memory has grown further.
    collectedBytes = bytes
    collectGarbage().then(
      () => {
        collectedBytes = process.memoryUsage.rss()
        log.debug({ bytes, collectedBytes }, 'released unused memory')
      },
      (error) => log.debug({ err: error }, 'failed to release unused memory'),
    )
  }, LOOK_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/**
 * Collects all garbage and returns free pages to the system. This takes tens of milliseconds. Node
 * has no other interface for it.
 */
export async function collectGarbage(): Promise<void> {
  const session = new Session()
  session.connect()
  try {
    await session.post('HeapProfiler.collectGarbage')
  } finally {
    session.disconnect()
  }
}
