import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../src/log.ts'
import type { RedisConnection } from '../src/redis/connection.ts'
import { readProcesses } from '../src/telemetry/heartbeat.ts'

/** As long as an API node that is ending may keep its callers waiting, milliseconds. */
const NODES_MS_MAX = 20_000

/** Where all processes get SIGTERM at once, the nodes announce within this time that they end, milliseconds. */
const WORD_MS = 500

const LOOK_EVERY_MS = 250

/** A worker that said nothing for so long may be dead, milliseconds: it is not left alone with the calls. */
const FRESH_MS = 3_000

/**
 * Waits as long as API nodes that end need this worker, that is while they finish calls and no other worker serves. Nodes
 * and workers that end together thus lose no call.
 */
export async function serveDrainingNodes(redis: RedisConnection, log: Log): Promise<void> {
  const end = performance.now() + NODES_MS_MAX
  await delay(WORD_MS)
  while (performance.now() < end) {
    if (!(await isNeeded(redis, log))) return
    await delay(LOOK_EVERY_MS)
  }
}

async function isNeeded(redis: RedisConnection, log: Log): Promise<boolean> {
  try {
    const processes = await readProcesses(redis)
    const isServed = processes.some(
      ({ kind, isDraining, at }) => kind === 'worker' && !isDraining && Date.now() - at < FRESH_MS,
    )
    return !isServed && processes.some(({ kind, isDraining }) => kind === 'web' && isDraining)
  } catch (error) {
    log.debug({ err: error }, 'failed to read which API nodes end')
    return false
  }
}

/** How long BullMQ may take to close once no job is under way, milliseconds. After a failover it may wait for ever. */
const IDLE_MS_MAX = 2_500

/** Closes the queues' workers: ends when they are closed, or when none of them has had a job for a while. */
export async function closeWorkers(closing: Promise<unknown>, active: () => number): Promise<void> {
  let isClosed = false
  const closed = closing.then(() => {
    isClosed = true
  })
  // It may fail after nobody waits for it any more.
  closed.catch(() => undefined)
  let activeAt = performance.now()
  while (!isClosed && performance.now() - activeAt < IDLE_MS_MAX) {
    await Promise.race([closed, delay(100)])
    if (active() > 0) activeAt = performance.now()
  }
}
