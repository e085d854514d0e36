import type { CapState } from '../caps/replies.ts'
import type { UpstreamCaps } from '../caps/upstream-caps.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { sourceName } from '../catalog/fallback.ts'
import { contactWords } from '../catalog/limit-words.ts'
import type { HealthCache } from '../health/health-cache.ts'
import type { Log } from '../log.ts'
import { CALL_JOB, type CallQueues } from '../queue/call-queue.ts'
import { SHARED_BUCKET } from '../queue/wait-queue-entry.ts'
import type { RedisClock } from '../redis/clock.ts'
import { type LaneJob, type LaneJobState, readLaneJobs } from './lane-jobs.ts'
import { hourOf, type RecentCounts, recentOf } from './last-hour.ts'
import type { CapRow, HealthRow, QueueRow, RecentCalls, UpstreamRow } from './snapshot.ts'

/** What the reader of rows needs. */
export interface RowDeps {
  catalog: Catalog
  queues: CallQueues
  clock: Pick<RedisClock, 'now'>
  health: HealthCache
  caps: UpstreamCaps
  log: Log
}

/** How often the state of an idle and healthy API is read, milliseconds. */
const IDLE_EVERY_MS = 4_000

/** An API with calls in this period is busy, and its state is read each time. Milliseconds. */
const BUSY_MS = 30_000

/** What Redis has about one API, besides its jobs. */
interface State {
  cap: CapState | undefined
  readAt: number
}

/**
 * Reads a row for each upstream: health, queue, cap, and what callers got recently. An idle and
 * healthy API is read only every four seconds, because reading all APIs each second would be most
 * of what a console costs Redis.
 */
export class UpstreamRowReader {
  readonly #deps: RowDeps
  readonly #states = new Map<string, State>()

  constructor(deps: RowDeps) {
    this.#deps = deps
  }

  /** @throws what Redis throws */
  async read(counts: RecentCounts): Promise<UpstreamRow[]> {
    const { queues, catalog } = this.#deps
    const jobs = await readLaneJobs(queues, catalog.keys())
    return await Promise.all(
      [...catalog.values()].map((api) => this.#readRow(api, { counts, jobs: jobs.of.get(api.slug) ?? [] })),
    )
  }

  async #readRow(api: Api, { counts, jobs }: { counts: RecentCounts; jobs: LaneJob[] }): Promise<UpstreamRow> {
    const { clock, health } = this.#deps
    const recent = recentOf(counts, api.slug)
    const { cap } = await this.#stateOf(api, jobs.some(isUnderWay) || isBusy(recent, counts.now))
    const row = describe(api)
    const isHeld = row.paused === 'hold'
    return {
      ...row,
      health: healthRow(health, api),
      queue: {
        ...queueRow(jobs, { now: clock.now(), isHeld, ahead: cap?.ahead ?? 0, underWay: cap?.underWay ?? 0 }),
        isPaused: isHeld,
      },
      cap: cap ? capRow(api, cap, clock.now()) : null,
      recent,
      hour: hourOf(counts.minutes, api.slug),
    }
  }

  async #stateOf(api: Api, isBusy: boolean): Promise<State> {
    const { slug } = api
    const known = this.#states.get(slug)
    const isWell = known?.cap && isAtRest(known.cap) && this.#deps.health.of(slug).status === 'Healthy'
    if (known && isWell && !isBusy && performance.now() - known.readAt < IDLE_EVERY_MS) return known
    const state = await this.#readState(api)
    this.#states.set(slug, state)
    return state
  }

  async #readState(api: Api): Promise<State> {
    const { health, caps, log } = this.#deps
    const { slug } = api
    const [cap] = await Promise.all([
      caps
        .of(api, SHARED_BUCKET)
        .read()
        .catch((error) => {
          log.debug({ err: error, slug }, 'failed to read a cap')
          return undefined
        }),
      health.read(slug),
    ])
    return { cap, readAt: performance.now() }
  }
}

/** Whether a job is running or waiting, and not just a scheduled probe. */
function isUnderWay({ state }: LaneJob): boolean {
  return state === 'waiting' || state === 'active'
}

function isBusy({ lastAt }: RecentCalls, now: number): boolean {
  return Object.values(lastAt).some((at) => now - at < BUSY_MS)
}

function isAtRest({ nextSlotMs, underWay, limitedMs, ahead }: CapState): boolean {
  return nextSlotMs === 0 && underWay === 0 && limitedMs === 0 && ahead === 0
}

/** The rows without data from Redis: names and settings. */
export function rowsWithoutRedis({ catalog }: RowDeps): UpstreamRow[] {
  return [...catalog.values()].map((api) => ({
    ...describe(api),
    health: null,
    queue: null,
    cap: null,
    recent: null,
    hour: null,
  }))
}

function describe(api: Api) {
  const { slug, upstream, enabled, isSwitchedOff, pausedMode, isKeyUnreadable } = api
  return {
    slug,
    name: upstream.displayName,
    enabled,
    isSwitchedOff,
    takesKey: upstream.credential !== undefined,
    paused: pausedMode ?? null,
    isKeyUnreadable,
    lackedContact: contactWords(api) ?? null,
  }
}

function capRow({ caps }: Api, cap: CapState, now: number): CapRow {
  return {
    concurrency: caps.concurrency,
    underWay: cap.underWay,
    nextSlotMs: Math.round(cap.nextSlotMs),
    limitedUntil: cap.limitedMs > 0 ? Math.round(now + cap.limitedMs) : null,
    rates: caps.rates.map(({ max, seconds }, index) => ({ max, seconds, left: cap.left[index] ?? max })),
  }
}

function healthRow(health: HealthCache, { slug, fallback }: Api): HealthRow {
  const view = health.of(slug)
  const { lastFailure } = view
  const checkedAt = Math.max(view.lastCallAt, view.lastProbeAt)
  return {
    status: view.status,
    score: view.score,
    since: view.since ?? null,
    cause: view.cause ?? null,
    checkedAt: checkedAt === 0 ? null : Math.round(checkedAt),
    // If a later attempt succeeded, the failure is not shown.
    lastFailure: lastFailure && lastFailure.at >= view.lastOkAt ? lastFailure : null,
    lastOkAt: view.lastOkAt === 0 ? null : Math.round(view.lastOkAt),
    answeredBy: view.isServedByFallback && fallback ? sourceName(fallback.upstream) : null,
    halfOpenInMs: health.breakerWaitMs(slug) ?? null,
  }
}

/**
 * Counts waiting and running calls of an API. Workers take jobs at once, so a job's state is not
 * enough: a call that waits for a permit is in the cap's queue, and a call of a paused API waits in
 * its worker.
 */
function queueRow(
  jobs: LaneJob[],
  { now, isHeld, ahead, underWay }: { now: number; isHeld: boolean; ahead: number; underWay: number },
): Omit<QueueRow, 'isPaused'> {
  const countOf = (state: LaneJobState, among = jobs): number =>
    Math.round(
      among.reduce(
        (sum, job) => sum + (job.state === state ? job.weight * (job.name === CALL_JOB ? job.calls.length : 1) : 0),
        0,
      ),
    )
  // Probes and key validations are not counted, because no caller waits for them.
  const calls = jobs.filter(({ name }) => name === CALL_JOB)
  const [queued, taken] = [countOf('waiting', calls), countOf('active', calls)]
  const all = queued + taken
  const waiting = isHeld ? all - Math.min(taken, underWay) : Math.max(queued, Math.min(ahead, all))
  const oldest = Math.min(...calls.filter(({ state }) => state !== 'failed').map(({ addedAt }) => addedAt))
  return {
    waiting,
    active: all - waiting,
    delayed: countOf('delayed'),
    failed: countOf('failed'),
    oldestMs: waiting > 0 && Number.isFinite(oldest) ? Math.max(0, now - oldest) : 0,
  }
}
