import type { Queue } from 'bullmq'
import { SHARED_BUCKET } from '../caps/bucket.ts'
import type { Api } from '../catalog/catalog.ts'
import type { Context } from '../context.ts'
import type { HealthCache } from '../health/health-watch.ts'
import { CALL_JOB } from '../queue/call-queue.ts'
import type { Minute } from '../telemetry/minute-stats.ts'
import { recentOf } from './last-hour.ts'
import type { UpstreamRow } from './snapshot.ts'

/** Waiting jobs looked at to find the oldest; the fair order is not that of age. */
const SAMPLED = 100

/** One row per upstream: health, queue, cap, and what its last minutes were like. */
export async function readUpstreamRows(context: Context, minutes: Minute[]): Promise<UpstreamRow[]> {
  return await Promise.all([...context.catalog.values()].map((api) => readRow(context, api, minutes)))
}

/** The rows as far as they are known without Redis. */
export function rowsWithoutRedis({ catalog, health }: Context): UpstreamRow[] {
  const idle = { paused: false, waiting: 0, active: 0, oldestMs: 0, perMinute: 0, errorShare: 0, upstreamP95: null }
  return [...catalog.values()].map((api) => ({ ...describe(api, health), ...idle, cap: null }))
}

async function readRow(
  { queues, health, caps: allCaps, log }: Context,
  api: Api,
  minutes: Minute[],
): Promise<UpstreamRow> {
  const { slug, caps } = api
  const queue = queues.of(slug)
  const [queued, cap] = await Promise.all([
    readQueue(queue, health.now()),
    allCaps
      .of(api, SHARED_BUCKET)
      .read()
      .catch((error) => {
        log.debug({ err: error, slug }, 'failed to read a cap')
        return undefined
      }),
  ])
  // A worker takes jobs ahead of their permits: a call that waits for one is in the cap's queue, wherever its job is.
  const waiting = Math.max(queued.queued, Math.min(cap?.ahead ?? 0, queued.queued + queued.taken))
  return {
    ...describe(api, health),
    paused: queued.paused,
    waiting,
    active: Math.max(0, queued.queued + queued.taken - waiting),
    oldestMs: waiting > 0 ? queued.oldestMs : 0,
    cap: cap
      ? {
          concurrency: caps.concurrency,
          underWay: cap.underWay,
          nextSlotMs: cap.nextSlotMs,
          rates: caps.rates.map(({ max, seconds }, index) => ({ max, seconds, left: cap.left[index] ?? 0 })),
        }
      : null,
    ...recentOf(minutes, slug),
  }
}

function describe({ slug, upstream, enabled }: Api, health: HealthCache) {
  const view = health.of(slug)
  return {
    slug,
    name: upstream.displayName,
    enabled,
    status: view.status,
    score: view.score,
    since: view.since ?? null,
    cause: view.cause ?? null,
    lastCode: view.lastCode ?? null,
    trialInMs: view.trialAt === undefined ? null : Math.max(0, view.trialAt - health.now()),
  }
}

interface QueueState {
  paused: boolean
  /** Jobs no worker has yet, and jobs that workers have; of these some wait for a permit of the cap. */
  queued: number
  taken: number
  oldestMs: number
}

async function readQueue(queue: Queue, now: number): Promise<QueueState> {
  const [counts, paused] = await Promise.all([queue.getJobCounts('waiting', 'prioritized', 'active'), queue.isPaused()])
  const queued = (counts.waiting ?? 0) + (counts.prioritized ?? 0)
  const taken = counts.active ?? 0
  const isIdle = queued + taken === 0
  const jobs = isIdle ? [] : await queue.getJobs(['waiting', 'prioritized', 'active'], 0, SAMPLED - 1, true)
  const calls = jobs.filter((job) => job?.name === CALL_JOB)
  const oldest = Math.min(...calls.map(({ timestamp }) => timestamp))
  return { paused, queued, taken, oldestMs: calls.length === 0 ? 0 : Math.max(0, now - oldest) }
}
