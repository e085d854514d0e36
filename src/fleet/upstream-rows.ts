import type { JobType, Queue } from 'bullmq'
import { SHARED_BUCKET } from '../caps/bucket.ts'
import type { CapState } from '../caps/cap-state.ts'
import type { UpstreamCaps } from '../caps/upstream-caps.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { sourceName } from '../catalog/fallback.ts'
import { contactWords } from '../catalog/limit-words.ts'
import { GOOD_TO_RECOVER } from '../health/breaker.ts'
import type { HealthCache } from '../health/health-watch.ts'
import type { Log } from '../log.ts'
import { storedCalls } from '../queue/call-job.ts'
import { CALL_JOB, type CallQueues } from '../queue/call-queue.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { Minute } from '../telemetry/minute-stats.ts'
import { readLastFailure } from './last-failure.ts'
import { recentOf } from './last-hour.ts'
import type { CapRow, FailureRow, HealthRow, QueueRow, UpstreamRow } from './snapshot.ts'

/** Jobs of a state looked at to find the oldest, for the fair order is not that of age, and how many calls a job has. */
const SAMPLED = 100

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
  return await Promise.all([...deps.catalog.values()].map((api) => readRow(deps, api, minutes)))
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
  { queues, health, caps, redis, log }: RowDeps,
  api: Api,
  minutes: Minute[],
): Promise<UpstreamRow> {
  const { slug } = api
  const [jobs, cap, lastFailure] = await Promise.all([
    readJobs(queues.of(slug), health.now()),
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
  return {
    ...row,
    // Whoever paused the queue itself, past the setting, holds its calls.
    paused: row.paused ?? (jobs.isPaused ? 'hold' : null),
    health: healthRow(health, api, lastFailure),
    queue: queueRow(jobs, cap?.ahead ?? 0),
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

interface Jobs extends Omit<QueueRow, 'waiting' | 'active'> {
  /** Calls that no worker has, and calls that workers have: several may share a job. */
  queued: number
  taken: number
}

/** A worker takes jobs ahead of their permits: a call that waits for one is in the cap's queue, wherever its job is. */
function queueRow({ queued, taken, oldestMs, ...rest }: Jobs, waitingForPermit: number): QueueRow {
  const waiting = Math.max(queued, Math.min(waitingForPermit, queued + taken))
  return { ...rest, waiting, active: Math.max(0, queued + taken - waiting), oldestMs: waiting > 0 ? oldestMs : 0 }
}

async function readJobs(queue: Queue, now: number): Promise<Jobs> {
  const [counts, isPaused] = await Promise.all([
    queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed'),
    queue.isPaused(),
  ])
  const [queued, taken] = await Promise.all([
    readCalls(queue, ['waiting', 'prioritized'], (counts.waiting ?? 0) + (counts.prioritized ?? 0)),
    readCalls(queue, ['active'], counts.active ?? 0),
  ])
  const oldest = Math.min(queued.oldest, taken.oldest)
  const oldestMs = Number.isFinite(oldest) ? Math.max(0, now - oldest) : 0
  const rest = { delayed: counts.delayed ?? 0, failed: counts.failed ?? 0, oldestMs }
  return { isPaused, queued: queued.calls, taken: taken.calls, ...rest }
}

/** How many calls are in jobs of these states, of which there are `count`, and when the oldest one was queued. */
async function readCalls(queue: Queue, states: JobType[], count: number): Promise<{ calls: number; oldest: number }> {
  if (count === 0) return { calls: 0, oldest: Number.POSITIVE_INFINITY }
  const sampled = (await queue.getJobs(states, 0, SAMPLED - 1, true)).filter((job) => job)
  const jobs = sampled.filter(({ name }) => name === CALL_JOB)
  const calls = jobs.reduce((sum, { data }) => sum + storedCalls(data).length, 0)
  const perJob = sampled.length === 0 ? 1 : (sampled.length - jobs.length + calls) / sampled.length
  return { calls: Math.round(count * perJob), oldest: Math.min(...jobs.map(({ timestamp }) => timestamp)) }
}
