import { Session } from 'node:inspector/promises'
import { performance } from 'node:perf_hooks'
import type { Log } from '../log.ts'

const LOOK_EVERY_MS = 10_000

/**
 * A process whose event loop is busy for less than this part of the time is idle: a pause delays
 * hardly a call.
 */
const IDLE_PART = 0.05

/**
 * Looks in a row at which the process must be idle before it collects, because a full collection
 * also drops compiled code, which busy times need.
 */
const IDLE_LOOKS_MIN = 3

/** Memory is collected when it grew by so much since the last time. */
const GROWTH = 1.3

/**
 * Gives memory back after a burst. V8 collects garbage while memory is allocated: a process that
 * becomes idle after many large bodies would keep them for as long as it stays so. An idle process
 * that has grown collects once.
 *
 * @returns how to stop
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
    // Set first, so that a collection that fails is not repeated before memory has grown further.
    collectedBytes = bytes
    collectGarbage().then(
      () => {
        collectedBytes = process.memoryUsage.rss()
        log.debug({ bytes, collectedBytes }, 'released unused memory')
      },
      (error) => log.debug({ err: error }, 'failed to give memory back'),
    )
  }, LOOK_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/**
 * Collects all garbage and gives free pages back to the system; tens of milliseconds. Node has no
 * other way to ask for it.
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
