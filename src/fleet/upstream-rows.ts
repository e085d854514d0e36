import { SHARED_BUCKET } from '../caps/bucket.ts'
import type { CapState } from '../caps/cap-state.ts'
import type { UpstreamCaps } from '../caps/upstream-caps.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { sourceName } from '../catalog/fallback.ts'
import { contactWords } from '../catalog/limit-words.ts'
import { GOOD_TO_RECOVER } from '../health/breaker.ts'
import type { HealthCache } from '../health/health-watch.ts'
import type { Log } from '../log.ts'
import { CALL_JOB, type CallQueues } from '../queue/call-queue.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { Minute } from '../telemetry/minute-stats.ts'
import { type LaneJob, type LaneJobState, readLaneJobs } from './lane-jobs.ts'
import { readLastFailure } from './last-failure.ts'
import { recentOf } from './last-hour.ts'
import type { CapRow, FailureRow, HealthRow, QueueRow, UpstreamRow } from './snapshot.ts'

/** What the rows are read from. */
export interface RowDeps {
  catalog: Catalog
  queues: CallQueues
  health: HealthCache
  caps: UpstreamCaps
  redis: RedisConnection
  log: Log
}

/** One row per upstream: health, queue, cap, and what callers got in the last minutes. @throws what Redis throws */
export async function readUpstreamRows(deps: RowDeps, minutes: Minute[]): Promise<UpstreamRow[]> {
  const jobs = await readLaneJobs(deps.queues, deps.catalog.keys())
  return await Promise.all(
    [...deps.catalog.values()].map((api) => readRow(deps, api, { minutes, jobs: jobs.of.get(api.slug) ?? [] })),
  )
}

/** The rows as far as they are known without Redis: names and settings. */
export function rowsWithoutRedis({ catalog }: RowDeps): UpstreamRow[] {
  return [...catalog.values()].map((api) => ({
    ...describe(api),
    health: null,
    queue: null,
    cap: null,
    recent: null,
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

async function readRow(
  { health, caps, redis, log }: RowDeps,
  api: Api,
  { minutes, jobs }: { minutes: Minute[]; jobs: LaneJob[] },
): Promise<UpstreamRow> {
  const { slug } = api
  const [cap, lastFailure] = await Promise.all([
    caps
      .of(api, SHARED_BUCKET)
      .read()
      .catch((error) => {
        log.debug({ err: error, slug }, 'failed to read a cap')
        return undefined
      }),
    readLastFailure(redis, slug),
    // Otherwise a failure may stand beside good attempts of the last seconds.
    health.read(slug),
  ])
  const row = describe(api)
  const isHeld = row.paused === 'hold'
  return {
    ...row,
    health: healthRow(health, api, lastFailure),
    queue: {
      ...queueRow(jobs, { now: health.now(), isHeld, ahead: cap?.ahead ?? 0, underWay: cap?.underWay ?? 0 }),
      isPaused: isHeld,
    },
    cap: cap ? capRow(api, cap, health.now()) : null,
    recent: recentOf(minutes, slug),
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

function healthRow(health: HealthCache, { slug, fallback }: Api, lastFailure: FailureRow | null): HealthRow {
  const view = health.of(slug)
  const checkedAt = Math.max(view.lastCallAt, view.lastProbeAt)
  return {
    status: view.status,
    score: view.score,
    since: view.since ?? null,
    cause: view.cause ?? null,
    checkedAt: checkedAt === 0 ? null : Math.round(checkedAt),
    // A reason that newer attempts have refuted is none.
    lastFailure: view.goodInRow >= GOOD_TO_RECOVER ? null : lastFailure,
    answeredBy: view.isServedByFallback && fallback ? sourceName(fallback.upstream) : null,
    halfOpenInMs: health.breakerWaitMs(slug) ?? null,
  }
}

/**
 * A worker takes jobs at once: a call that waits for a permit is in the cap's queue, and a call that an operator holds
 * waits in the worker, wherever its job is.
 */
function queueRow(
  jobs: LaneJob[],
  { now, isHeld, ahead, underWay }: { now: number; isHeld: boolean; ahead: number; underWay: number },
): Omit<QueueRow, 'isPaused'> {
  const countOf = (state: LaneJobState): number =>
    Math.round(
      jobs.reduce(
        (sum, job) => sum + (job.state === state ? job.weight * (job.name === CALL_JOB ? job.calls.length : 1) : 0),
        0,
      ),
    )
  const [queued, taken] = [countOf('waiting'), countOf('active')]
  const all = queued + taken
  const waiting = isHeld ? all - Math.min(taken, underWay) : Math.max(queued, Math.min(ahead, all))
  const oldest = Math.min(
    ...jobs.filter(({ name, state }) => name === CALL_JOB && state !== 'failed').map(({ addedAt }) => addedAt),
  )
  return {
    waiting,
    active: all - waiting,
    delayed: countOf('delayed'),
    failed: countOf('failed'),
    oldestMs: waiting > 0 && Number.isFinite(oldest) ? Math.max(0, now - oldest) : 0,
  }
}
