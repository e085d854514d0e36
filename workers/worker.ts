import { QUEUE_LENGTH_MAX } from '../src/caps/scripts.ts'
import type { Api } from '../src/catalog/catalog.ts'
import { type Config, ConfigError } from '../src/config.ts'
import { createLog, type Log } from '../src/log.ts'
import { loadSettings, type Running, runProcess } from '../src/process.ts'
import { CALL_JOB } from '../src/queue/call-queue.ts'
import { PROBE_JOB } from '../src/queue/probe-job.ts'
import { VALIDATE_KEY } from '../src/queue/validate-key-job.ts'
import { type RedisConnection, unlessAway } from '../src/redis/connection.ts'
import { channels, upstreamKeys } from '../src/redis/keys.ts'
import { closeWorkers, serveDrainingNodes } from './drain.ts'
import type { ProcessorDeps } from './jobs/process-call.ts'
import { processCallJob, replyToLostJob } from './jobs/process-job.ts'
import { processProbe } from './jobs/process-probe.ts'
import { validateKey } from './jobs/validate-key.ts'
import { QueueWorker } from './queue/queue-worker.ts'
import { StalledJobs } from './stalled-jobs.ts'
import { LOCK_LOST } from './upstream/call-end.ts'
import { openWorkerContext } from './worker-context.ts'

/** A killed worker's jobs run elsewhere after both times. A shorter lock causes false stalls on a busy process. */
const LOCK_MS = 4_000
const STALLED_CHECK_MS = 1_000
const STALLED_WARN_MS = 10_000

/** How often a job may outlive its worker. A job that crashes its workers ends with its deadline, or with this. */
const STALLED_MAX = 30

/** Jobs of an upstream in a process. With fewer, calls that wait for their account's share would keep others in the queue. */
const CONCURRENCY_PER_QUEUE = QUEUE_LENGTH_MAX

/** Longest an idle worker blocks, seconds. Short beside deadlines: the one worker that a new job wakes may hang. */
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
  const { deps, listener, permits, close } = await openWorkerContext(config, log)
  const { redis, clock, catalog, running, telemetry } = deps
  const served = servedApis(config, [...catalog.values()])
  const workers = served.map((api) => startWorker(api, deps))
  const stalled = new StalledJobs({
    ...{ redis, workers, log },
    ...{ everyMs: STALLED_CHECK_MS, warnEveryMs: STALLED_WARN_MS },
  })
  stalled.open()
  subscribe(listener, {
    // A lost message costs one request whose caller left.
    [channels.cancel]: (message) => running.cancel(message.split(' ')[1] ?? ''),
    [channels.wakeUp]: (message) => permits.onWakeUp(message),
  })
  log.info({ upstreams: workers.length }, 'workers started')
  return {
    log,
    finish: async () => {
      telemetry.drain()
      await unlessAway(redis, serveDrainingNodes({ redis, clock, slugs: served.map(({ slug }) => slug), log }))
      const closing = Promise.all([stalled.close(), ...workers.map((worker) => worker.close())])
      await unlessAway(
        redis,
        closeWorkers(closing, () => running.jobs),
      )
    },
    close,
  }
}

function servedApis({ upstreams }: Config, apis: Api[]): Api[] {
  const unknown = upstreams.only.find((slug) => !apis.some((api) => api.slug === slug))
  if (unknown) throw new ConfigError(`WORKER_UPSTREAMS names no upstream with "${unknown}"`)
  return upstreams.only.length === 0 ? apis : apis.filter(({ slug }) => upstreams.only.includes(slug))
}

/** Its processors return null, because BullMQ keeps what they return in Redis. */
function startWorker(api: Api, deps: ProcessorDeps): QueueWorker {
  const { redis, log, running } = deps
  const worker = new QueueWorker(
    api.slug,
    // Three named parameters without defaults: by their number BullMQ tells whether a signal is wanted.
    (job, _token, signal) => {
      const run = job.name === PROBE_JOB ? processProbe : job.name === VALIDATE_KEY ? validateKey : processCallJob
      return running.runJob(() => run(deps, job, signal ?? new AbortController().signal))
    },
    {
      connection: redis,
      prefix: upstreamKeys.queuePrefix(api.slug),
      concurrency: CONCURRENCY_PER_QUEUE,
      lockDuration: LOCK_MS,
      // All queues are checked together, at the interval of BullMQ's marker.
      skipStalledCheck: true,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: STALLED_MAX,
      drainDelay: DRAIN_DELAY_SECONDS,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 100, age: 3_600 },
    },
  )
  worker.on('error', (error) => log.debug({ err: error, slug: api.slug }, 'queue worker failed'))
  worker.on('failed', (job, error) => {
    log.warn({ err: error, slug: api.slug, jobId: job?.id }, 'job failed')
    if (job?.name !== CALL_JOB) return
    replyToLostJob(deps, job, error).catch((cause) =>
      log.warn({ err: cause, jobId: job.id }, 'failed to answer lost calls'),
    )
  })
  worker.on('lockRenewalFailed', (ids) => {
    for (const id of ids) worker.cancelJob(id, LOCK_LOST)
  })
  worker.run().catch((error) => log.error({ err: error, slug: api.slug }, 'queue worker ended'))
  return worker
}

/** The connection subscribes again by itself after it was lost. */
function subscribe(listener: RedisConnection, handlers: Record<string, (message: string) => void>): void {
  listener.on('message', (channel, message) => handlers[channel]?.(message))
  listener.subscribe(...Object.keys(handlers)).catch(() => undefined)
}
