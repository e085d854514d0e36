import { QUEUE_LENGTH_MAX } from '../src/caps/scripts.ts'
import { isOwn } from '../src/catalog/catalog.ts'
import { type Config, ConfigError } from '../src/config.ts'
import { createLog, type Log } from '../src/log.ts'
import { loadSettings, type Running, runProcess } from '../src/process.ts'
import { CALL_JOB } from '../src/queue/call-queue.ts'
import { type Lane, laneOfOnly, sharedLanes } from '../src/queue/lanes.ts'
import { unlessAway } from '../src/redis/connection.ts'
import { channels } from '../src/redis/keys.ts'
import { closeWorkers, serveDrainingNodes } from './drain.ts'
import { EarlierQueues } from './earlier-queues.ts'
import { LOCK_LOST } from './errors/abort-reasons.ts'
import { processorOf, replyToLostJob } from './jobs/process-job.ts'
import type { WorkerDeps } from './jobs/worker-deps.ts'
import { QueueWorker } from './queue/queue-worker.ts'
import { openWorkerContext } from './worker-context.ts'

/**
 * Lifetime of a job's lock, and the interval in which workers look for jobs whose lock has expired.
 * The jobs of a killed worker run again after the sum of the two. With a shorter lock, jobs of a
 * process that is merely busy would run twice.
 */
const LOCK_MS = 4_000
const STALLED_CHECK_MS = 1_000

/**
 * Least time between two warnings about jobs that run again, because a job that kills its workers
 * runs again every few seconds. Milliseconds.
 */
const STALLED_WARN_MS = 10_000

/**
 * How many workers may die or lose their lock while they run a job. Then the job fails, so that a
 * job which crashes its workers does not go on for ever.
 */
const STALLED_MAX = 30

/**
 * Longest time that an idle worker blocks, seconds. It is short compared with deadlines, because
 * the worker that a new job wakes may hang.
 */
const DRAIN_DELAY_SECONDS = 5

if (import.meta.main) {
  await runProcess('worker', async () => {
    const config = await loadSettings('worker')
    const running = await openWorker(config, createLog(config.log, 'worker'))
    process.send?.({ ready: true })
    return running
  })
}

export async function openWorker(config: Config, log: Log): Promise<Running> {
  const { deps, announcements, permits, ownApis, close } = await openWorkerContext(config, log)
  const { redis, clock, catalog, running, telemetry } = deps
  const { only } = config.upstreams
  const unknown = only.find((slug) => !catalog.has(slug))
  if (unknown) throw new ConfigError(`WORKER_UPSTREAMS names ${unknown}, which is not an API of the catalog`)
  const served = () => [...catalog.values()].filter(({ slug }) => only.length === 0 || only.includes(slug))
  const slugs = () => served().map(({ slug }) => slug)
  // Calls wait for their caps inside the worker. With fewer jobs at once, calls of one slow API
  // would delay all others.
  const concurrency = () => Math.max(1, served().length) * QUEUE_LENGTH_MAX
  const lanes = only.length === 0 ? sharedLanes(redis) : [laneOfOnly(slugs())]
  const start = (lane: Lane): QueueWorker => startWorker(lane, { ...deps, concurrency: concurrency() })
  const workers = lanes.map(start)
  ownApis.onChange(() => {
    for (const worker of workers) worker.concurrency = concurrency()
  })
  // Versions before lanes had no own APIs.
  const before = served()
    .filter((api) => !isOwn(api))
    .map(({ slug }) => slug)
  const earlier = new EarlierQueues({ redis, clock, slugs: before, startWorker: start, log })
  earlier.open()
  // If a message is lost, one request is sent although its caller has left.
  announcements.on(channels.cancel, (message) => running.cancel(message.split(' ')[1] ?? ''))
  announcements.on(channels.wakeUp, (message) => permits.onWakeUp(message))
  log.info({ upstreams: served().length, lanes: workers.length }, 'worker started')
  return {
    log,
    finish: async () => {
      telemetry.drain()
      await unlessAway(redis, serveDrainingNodes({ redis, clock, slugs: slugs(), log }))
      const closing = Promise.all([earlier.close(), ...workers.map((worker) => worker.close())])
      await unlessAway(
        redis,
        closeWorkers(closing, () => running.jobs),
      )
    },
    close,
  }
}

function startWorker({ name, prefix }: Lane, deps: WorkerDeps & { concurrency: number }): QueueWorker {
  const { redis, log, concurrency } = deps
  const worker = new QueueWorker(name, processorOf(deps), {
    connection: redis,
    prefix,
    concurrency,
    lockDuration: LOCK_MS,
    stalledInterval: STALLED_CHECK_MS,
    maxStalledCount: STALLED_MAX,
    drainDelay: DRAIN_DELAY_SECONDS,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 100, age: 3_600 },
  })
  worker.on('error', (error) => log.debug({ err: error, lane: name }, 'queue worker failed'))
  warnOfStalled(worker, log)
  worker.on('failed', (job, error) => {
    log.warn({ err: error, lane: name, jobId: job?.id }, 'job failed')
    if (job?.name !== CALL_JOB) return
    replyToLostJob(deps, job, error).catch((cause) =>
      log.warn({ err: cause, jobId: job.id }, 'failed to answer lost calls'),
    )
  })
  worker.on('lockRenewalFailed', (ids) => {
    for (const id of ids) worker.cancelJob(id, LOCK_LOST)
  })
  worker.run().catch((error) => log.error({ err: error, lane: name }, 'queue worker ended'))
  return worker
}

/** Warns of jobs that this worker put back into their lane because their worker died. */
function warnOfStalled(worker: QueueWorker, log: Log): void {
  let jobs = 0
  let warnedAt = Number.NEGATIVE_INFINITY
  const warn = (): void => {
    if (jobs > 0) log.warn({ lane: worker.name, jobs }, 'jobs of a worker that died or stalled run again')
    jobs = 0
  }
  worker.on('stalled', () => {
    jobs += 1
    if (jobs > 1) return
    // The jobs of one check come in one turn of the event loop.
    const waitMs = Math.max(0, warnedAt + STALLED_WARN_MS - performance.now())
    warnedAt = performance.now() + waitMs
    setTimeout(warn, waitMs).unref()
  })
}
