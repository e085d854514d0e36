import type { Upstream } from '../catalog/upstream.ts'
import type { Log } from '../log.ts'
import { earlierLaneOf, type Lane, laneOfOnly, sharedLaneOf, sharedLanes } from '../queue/lanes.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { type ProcessBeat, readProcesses } from '../telemetry/heartbeat.ts'
import { ApiLists, digestOf } from '../telemetry/known-apis.ts'

/** How often workers are read, milliseconds. Heartbeats have the same interval. */
const LOOK_EVERY_MS = 2_000

/**
 * Workers that start together with this process have sent their first heartbeat after so many
 * milliseconds.
 */
const FIRST_BEATS_MS = 5 * LOOK_EVERY_MS

interface LaneDirectoryDeps {
  redis: RedisConnection
  /** Redis' time, milliseconds since the epoch. */
  now: () => number
  log: Pick<Log, 'debug'>
}

/**
 * Knows which lane carries the calls of each API, from the heartbeats of living workers. Workers
 * with `WORKER_UPSTREAMS` have a lane of their own for the APIs that they name. While Redis is
 * away, the last reading is used.
 */
export class LaneDirectory {
  readonly #deps: LaneDirectoryDeps
  readonly #shared: Lane[]
  readonly #lists: ApiLists
  #workers: ProcessBeat[] = []
  /** The lane of each API that was looked up since the last reading. */
  #lanes = new Map<string, Lane>()
  #served = new Map<string, boolean>()
  #openedAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(deps: LaneDirectoryDeps) {
    this.#deps = deps
    this.#shared = sharedLanes(deps.redis)
    this.#lists = new ApiLists(deps.redis)
  }

  /** Reads the workers once if Redis is available, and then keeps following them. */
  async open(): Promise<void> {
    this.#openedAt = this.#deps.now()
    await this.#look()
    this.#timer = setInterval(() => void this.#look(), LOOK_EVERY_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  readonly laneOf = (slug: string): Lane => {
    const known = this.#lanes.get(slug)
    if (known) return known
    const lane = this.#find(slug)
    this.#lanes.set(slug, lane)
    return lane
  }

  /**
   * Whether a living worker has loaded the API and serves it. Fails open if this is unknown: the
   * job then waits for a worker until its deadline.
   */
  isServed(slug: string): boolean {
    const known = this.#served.get(slug)
    if (known !== undefined) return known
    const isServed = this.#isServedNow(slug)
    this.#served.set(slug, isServed)
    return isServed
  }

  /**
   * Whether every worker that serves these APIs has loaded these documents. False while no worker
   * is known, because the first heartbeats of workers may still have the previous list.
   */
  areLoaded(apis: readonly { slug: string; upstream: Pick<Upstream, 'own'> }[]): boolean {
    if (this.#workers.length === 0) return false
    return this.#workers.every(({ serves, apis: digest }) => {
      const list = this.#lists.of(digest)
      const served = apis.filter(({ slug }) => serves === undefined || serves.includes(slug))
      return served.every((api) => list?.[api.slug] === digestOf(api))
    })
  }

  /**
   * Whether a living worker serves the API, so that its calls do not wait for an operator. Fails
   * open while workers may still be starting.
   */
  hasWorker(slug: string): boolean {
    return this.#serving(slug).length > 0 || this.#deps.now() < this.#openedAt + FIRST_BEATS_MS
  }

  #isServedNow(slug: string): boolean {
    const serving = this.#serving(slug)
    if (serving.length === 0) return true
    return serving.some(({ apis }) => {
      const list = this.#lists.of(apis)
      return list === undefined || Object.hasOwn(list, slug)
    })
  }

  #serving(slug: string): ProcessBeat[] {
    return this.#workers.filter(({ serves }) => serves === undefined || serves.includes(slug))
  }

  #find(slug: string): Lane {
    const serving = this.#serving(slug)
    const withLanes = serving.filter(({ hasLanes }) => hasLanes)
    // Only workers of an earlier version are alive. They take calls from the queue of each API.
    // @until 0.4.0
    if (serving.length > 0 && withLanes.length === 0) return earlierLaneOf(slug)
    const only = withLanes.find(({ serves }) => serves !== undefined)?.serves
    return only ? laneOfOnly(only) : sharedLaneOf(this.#shared, slug)
  }

  async #look(): Promise<void> {
    const { redis, now, log } = this.#deps
    if (redis.status !== 'ready') return
    try {
      const beats = (await readProcesses(redis, now())).filter(({ kind }) => kind === 'worker')
      const staying = beats.filter(({ isDraining }) => !isDraining)
      // A closing worker continues to serve until another worker does.
      this.#workers = staying.length > 0 ? staying : beats
      this.#lanes = new Map()
      await this.#lists.read(this.#workers.map(({ apis }) => apis))
      this.#served = new Map()
    } catch (error) {
      log.debug({ err: error }, 'failed to read which lanes workers serve')
    }
  }
}
