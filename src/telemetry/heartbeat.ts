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

/** How many beats pass until the list of APIs is said again. */
const APIS_EVERY_BEATS = 30

/** Errors of documents that a heartbeat carries. */
const REFUSED_MAX = 3

/** A process that was not heard of for so long is gone, milliseconds. */
const ALIVE_MS = 7_000

const writeBeat = loadScript(new URL('./lua/write-beat.lua', import.meta.url))

export interface HeartbeatDeps {
  redis: RedisConnection
  kind: string
  inFlight: () => number
  /** Slugs of the upstreams that a worker serves; absent: all. */
  serves?: string[] | undefined
  /** What the process has loaded. */
  apis: () => KnownApis
  /** Errors of documents that it did not load, a line each. */
  refused: () => readonly string[]
  droppedRows: Pick<DroppedRows, 'lately'>
  /**
   * Redis' time: machines whose clocks differ agree on who is alive. Milliseconds since the epoch.
   */
  now: () => number
  log: Log
}

export interface Heartbeat {
  /** Share of time the event loop was busy up to the last beat, 0 to 1. */
  busy: () => number
  /** Says at once that the process ends. */
  drain: () => void
  close: () => Promise<void>
}

/** A process that is alive, with its load. */
export interface ProcessBeat {
  id: string
  /** web, worker, probe, ops. */
  kind: string
  host: string
  pid: number
  /** Redis' time, milliseconds since the epoch. */
  startedAt: number
  at: number
  /**
   * Share of time the event loop was busy, 0 to 1, and its 99th percentile of delay, milliseconds.
   */
  busy: number
  lagMs: number
  memoryBytes: number
  /** Calls waiting for replies, or jobs under way. */
  inFlight: number
  /** The process is ending: it finishes the work it has. */
  isDraining: boolean
  /** Slugs of the upstreams that a worker serves; absent: all. */
  serves?: string[]
  /**
   * Digest of the list of the APIs that it has loaded; absent from processes of an earlier version.
   * @until 0.4.0
   */
  apis?: string
  /** The first errors of changed documents that it did not load; absent: there are none. */
  refused?: string[]
  /** Calls that have no row in the log of calls; absent: none lately. */
  dropped?: DroppedLately[]
  /** Its calls travel in lanes; absent from processes of an earlier version. @until 0.4.0 */
  hasLanes?: true
}

/** Says each two seconds that this process lives and how busy it is. */
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
      // Redis' time is not known yet when the process starts.
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
  // A Redis that lost its memory has no list.
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
  publishApis(redis, apis).catch((error) => log.debug({ err: error }, 'failed to say which APIs are loaded'))
}

function firstOf(refused: readonly string[]): Pick<ProcessBeat, 'refused'> {
  return refused.length === 0 ? {} : { refused: refused.slice(0, REFUSED_MAX) }
}

/**
 * The processes that are alive; processes that went are forgotten when Redis takes writes. `now` is
 * Redis' time.
 */
export async function readProcesses(redis: RedisConnection, now: number): Promise<ProcessBeat[]> {
  const beats = Object.values(await redis.hgetall(keys.processes)).map((text): ProcessBeat => JSON.parse(text))
  const gone = beats.filter(({ at }) => now - at > ALIVE_MS)
  if (gone.length > 0) await redis.hdel(keys.processes, ...gone.map(({ id }) => id)).catch(() => undefined)
  return beats
    .filter((beat) => !gone.includes(beat))
    .sort((a, b) => a.kind.localeCompare(b.kind) || a.startedAt - b.startedAt)
}
