import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../src/log.ts'
import type { RedisClock } from '../src/redis/clock.ts'
import type { RedisConnection } from '../src/redis/connection.ts'
import { readProcesses } from '../src/telemetry/heartbeat.ts'

const NODES_MS_MAX = 20_000

/**
 * Within this time, API nodes that got SIGTERM together with this worker have announced their end,
 * milliseconds.
 */
const ANNOUNCE_MS = 500

const LOOK_EVERY_MS = 250

/** If another worker was silent for so long, it may be dead, so the calls are not left to it. */
const FRESH_MS = 3_000

export interface DrainDeps {
  redis: RedisConnection
  clock: Pick<RedisClock, 'now'>
  /** The upstreams that this worker serves. */
  slugs: string[]
  log: Log
}

/** Waits while closing API nodes finish calls and no other worker serves these APIs. */
export async function serveDrainingNodes(deps: DrainDeps): Promise<void> {
  const end = performance.now() + NODES_MS_MAX
  await delay(ANNOUNCE_MS)
  while (performance.now() < end) {
    if (!(await isNeeded(deps))) return
    await delay(LOOK_EVERY_MS)
  }
}

async function isNeeded({ redis, clock, slugs, log }: DrainDeps): Promise<boolean> {
  try {
    const processes = await readProcesses(redis, clock.now())
    const others = processes.filter(
      ({ kind, isDraining, at }) => kind === 'worker' && !isDraining && clock.now() - at < FRESH_MS,
    )
    const isServed = slugs.every((slug) => others.some(({ serves }) => serves === undefined || serves.includes(slug)))
    return !isServed && processes.some(({ kind, isDraining }) => kind === 'web' && isDraining)
  } catch (error) {
    log.debug({ err: error }, 'failed to read which API nodes are shutting down')
    return false
  }
}

/**
 * Longest wait for workers without jobs, milliseconds: after a failover BullMQ may never close
 * them.
 */
const IDLE_MS_MAX = 2_500

/** Resolves when the workers are closed, or when none of them has had a job for a while. */
export async function closeWorkers(closing: Promise<unknown>, active: () => number): Promise<void> {
  let isClosed = false
  const closed = closing.then(() => {
    isClosed = true
  })
  closed.catch(() => undefined)
  let activeAt = performance.now()
  while (!isClosed && performance.now() - activeAt < IDLE_MS_MAX) {
    await Promise.race([closed, delay(100)])
    if (active() > 0) activeAt = performance.now()
  }
}
