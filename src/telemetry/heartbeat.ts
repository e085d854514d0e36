import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Log } from '../log.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { keys } from '../redis/keys.ts'
import { loadScript } from '../redis/script.ts'
import type { DroppedLately, DroppedRows } from './dropped-rows.ts'
import { digestOfAll, type KnownApis, publishApis } from './known-apis.ts'

const BEAT_MS = 2_000

/** After this number of heartbeats the list of APIs is written again. */
const APIS_EVERY_BEATS = 30

/** Most errors of documents in a heartbeat. */
const REFUSED_MAX = 3

/** A process without a heartbeat for so long counts as dead, milliseconds. */
const ALIVE_MS = 7_000

const writeBeat = loadScript(new URL('./lua/write-beat.lua', import.meta.url))

export interface HeartbeatDeps {
  redis: RedisConnection
  kind: string
  inFlight: () => number
  /** Slugs of the upstreams that the worker serves; absent: all. */
  serves?: string[] | undefined
  /** The APIs that the process has loaded. */
  apis: () => KnownApis
  /** Errors of documents that the process did not load, one line each. */
  refused: () => readonly string[]
  droppedRows: Pick<DroppedRows, 'lately'>
  /**
   * The time of Redis, so that machines with different clocks agree on who is alive. Milliseconds
   * since the epoch.
   */
  now: () => number
  log: Log
}

export interface Heartbeat {
  /** Share of time in which the event loop was busy before the last heartbeat, 0 to 1. */
  busy: () => number
  /** Reports at once that the process is closing. */
  drain: () => void
  close: () => Promise<void>
}

/** A living process with its load. */
export interface ProcessBeat {
  id: string
  /** The kind: web, worker, probe or ops. */
  kind: string
  host: string
  pid: number
  /** Redis' time, milliseconds since the epoch. */
  startedAt: number
  at: number
  /**
   * Share of time in which the event loop was busy, 0 to 1, and the 99th percentile of its delay,
   * milliseconds.
   */
  busy: number
  lagMs: number
  memoryBytes: number
  /** Calls that wait for replies (web), or running jobs (worker). */
  inFlight: number
  /** Whether the process is closing. It still finishes its work. */
  isDraining: boolean
  /** Slugs of the upstreams that the worker serves; absent: all. */
  serves?: string[]
  /**
   * Digest of the list of loaded APIs; absent for processes of an earlier version.
   * @until 0.4.0
   */
  apis?: string
  /**
   * The first errors of changed documents that the process did not load; absent if there are none.
   */
  refused?: string[]
  /** Calls without a row in the log of calls; absent if there were none lately. */
  dropped?: DroppedLately[]
  /**
   * Whether the calls of the process travel in lanes; absent for an earlier version. @until 0.4.0
   */
  hasLanes?: true
}

/** Reports every two seconds that this process is alive and how busy it is. */
export function startHeartbeat(deps: HeartbeatDeps): Heartbeat {
  const { redis, kind, inFlight, serves, apis, refused, droppedRows, now: redisNow, log } = deps
  let apisDigest: string | undefined
  let beats = 0
  const id = randomUUID()
  const started = performance.now()
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  let last = performance.eventLoopUtilization()
  let busy = 0
  let isDraining = false
  const beat = (): void => {
    const now = performance.eventLoopUtilization()
    busy = performance.eventLoopUtilization(now, last).utilization
    const dropped = droppedRows.lately()
    const loaded = apis()
    const digest = digestOfAll(loaded)
    const beat: ProcessBeat = {
      id,
      kind,
      host: hostname(),
      pid: process.pid,
      // The time of Redis is not known yet when the process starts.
      startedAt: Math.round(redisNow() - (performance.now() - started)),
      at: redisNow(),
      busy,
      lagMs: Math.max(0, delay.percentile(99) / 1e6 - 10),
      memoryBytes: process.memoryUsage.rss(),
      inFlight: inFlight(),
      isDraining,
      hasLanes: true,
      apis: digest,
      ...firstOf(refused()),
      ...(serves === undefined ? {} : { serves }),
      ...(dropped.length === 0 ? {} : { dropped }),
    }
    last = now
    delay.reset()
    if (redis.status !== 'ready') return
    if (beats % APIS_EVERY_BEATS === 0 || digest !== apisDigest) publish(deps, loaded)
    apisDigest = digest
    beats += 1
    writeBeat
      .run(redis, [keys.processes], [id, JSON.stringify(beat)])
      .catch((error) => log.debug({ err: error }, 'failed to write the heartbeat'))
  }
  // If Redis lost its memory, the list must be written again.
  const onReady = () => {
    beats = 0
    beat()
  }
  redis.on('ready', onReady)
  beat()
  const timer = setInterval(beat, BEAT_MS)
  return {
    busy: () => busy,
    drain: () => {
      isDraining = true
      beat()
    },
    close: async () => {
      clearInterval(timer)
      redis.off('ready', onReady)
      delay.disable()
      if (redis.status === 'ready') await redis.hdel(keys.processes, id).catch(() => undefined)
    },
  }
}

function publish({ redis, log }: HeartbeatDeps, apis: KnownApis): void {
  publishApis(redis, apis).catch((error) => log.debug({ err: error }, 'failed to report which APIs are loaded'))
}

function firstOf(refused: readonly string[]): Pick<ProcessBeat, 'refused'> {
  return refused.length === 0 ? {} : { refused: refused.slice(0, REFUSED_MAX) }
}

/**
 * The living processes. Heartbeats of dead processes are deleted if Redis accepts writes.
 * @param now the time of Redis
 */
export async function readProcesses(redis: RedisConnection, now: number): Promise<ProcessBeat[]> {
  const beats = Object.values(await redis.hgetall(keys.processes)).map((text): ProcessBeat => JSON.parse(text))
  const gone = beats.filter(({ at }) => now - at > ALIVE_MS)
  if (gone.length > 0) await redis.hdel(keys.processes, ...gone.map(({ id }) => id)).catch(() => undefined)
  return beats
    .filter((beat) => !gone.includes(beat))
    .sort((a, b) => a.kind.localeCompare(b.kind) || a.startedAt - b.startedAt)
}
