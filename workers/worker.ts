import { Worker } from 'bullmq'
import { memoize } from '../src/async/memoize.ts'
import { ResponseCache } from '../src/cache/response-cache.ts'
import { QUEUE_LENGTH_MAX } from '../src/caps/scripts.ts'
import { UpstreamCaps } from '../src/caps/upstream-caps.ts'
import { type Api, loadCatalog } from '../src/catalog/catalog.ts'
import { unknownVariables } from '../src/catalog/unknown-variables.ts'
import { type Config, ConfigError, loadProcessConfig } from '../src/config.ts'
import { isSameRedis } from '../src/context.ts'
import { openDatabase } from '../src/db/database.ts'
import { HealthCache } from '../src/health/health-watch.ts'
import { createLog, type Log } from '../src/log.ts'
import { SettingsSync } from '../src/operator/upstream-settings.ts'
import { type Running, runProcess } from '../src/process.ts'
import { CALL_JOB, CallQueues } from '../src/queue/call-queue.ts'
import { PROBE_JOB } from '../src/queue/probe-job.ts'
import { ReplyOutbox } from '../src/queue/reply.ts'
import { VALIDATE_KEY } from '../src/queue/validate-key-job.ts'
import { RedisClock } from '../src/redis/clock.ts'
import { closeRedis, openRedis, type RedisConnection, unlessAway } from '../src/redis/connection.ts'
import { channels, upstreamKeys } from '../src/redis/keys.ts'
import { MemoryHeadroom } from '../src/redis/memory-headroom.ts'
import { withClusterNodes } from '../src/redis/server-info.ts'
import { openTelemetry } from '../src/telemetry/telemetry.ts'
import { RequestCoalescer } from './cache/request-coalescer.ts'
import { closeWorkers, serveDrainingNodes } from './drain.ts'
import type { ProcessorDeps } from './jobs/process-call.ts'
import { processCallJob, replyToLostJob } from './jobs/process-job.ts'
import { processProbe } from './jobs/process-probe.ts'
import { RunningCalls } from './jobs/running-calls.ts'
import { validateKey } from './jobs/validate-key.ts'
import { GrantLedger } from './permits/grant-ledger.ts'
import { PermitClients } from './permits/permit-clients.ts'
import { StalledJobs } from './stalled-jobs.ts'
import { SuccessBatcher } from './upstream/attempt-batcher.ts'
import { LOCK_LOST } from './upstream/call-end.ts'
import { HttpClients } from './upstream/http-client.ts'
import { ProviderKeys } from './upstream/provider-keys.ts'
import { RetryBudget } from './upstream/retry.ts'
import { UnansweredRequests } from './upstream/unanswered.ts'

/** A killed worker's jobs run elsewhere after lock and check. Shorter ones cause false stalls on a busy process. */
const LOCK_MS = 4_000
const STALLED_CHECK_MS = 1_000

/** How often a job may outlive its worker. A job that crashes its workers ends with its deadline, or with this. */
const STALLED_MAX = 30

/**
 * Jobs of one upstream in a process: as many as its wait queue holds. With fewer, calls of an account without a share
 * left would keep others in BullMQ's queue.
 */
const CONCURRENCY_PER_QUEUE = QUEUE_LENGTH_MAX

/** Share of a call's time that one attempt may take. */
const ATTEMPT_SHARE = 2 / 3

/** Longest an idle worker blocks, seconds. Short beside deadlines: Redis may wake a process that is blocked itself. */
const DRAIN_DELAY_SECONDS = 5

if (import.meta.main) {
  await runProcess('worker', async () => {
    const config = await withClusterNodes(loadProcessConfig('worker'))
    const running = await openWorker(config, createLog(config.log, 'worker'))
    process.send?.({ ready: true })
    return running
  })
}

/** Opens the queues' workers of one process, with the connections and watches that they share. */
export async function openWorker(config: Config, log: Log): Promise<Running> {
  const redis = openRedis(config.redisUrls, 'blocking', log)
  const listener = openRedis(config.redisUrls, 'blocking', log)
  const cacheRedis = isSameRedis(config) ? redis : openRedis(config.cacheRedisUrls, 'producer', log)
  const db = openDatabase(config.databaseUrl, log)
  const clock = new RedisClock(redis, log)
  clock.open()
  const catalog = await loadCatalog(config.upstreams.bySlug)
  for (const sentence of unknownVariables(config.upstreams.variables, catalog)) log.warn(sentence)
  const health = new HealthCache({ redis, redisUrls: config.redisUrls, log }, catalog.keys())
  health.open()
  const settings = new SettingsSync({ config, log, catalog, db, redis })
  await settings.open()
  const running = new RunningCalls()
  const telemetry = await openTelemetry(config, 'worker', { db, redis, log, inFlight: () => running.calls })
  const grants = new GrantLedger(db, clock, log)
  grants.open()
  const clients = new HttpClients()
  const caps = new UpstreamCaps({ redis, db, catalog })
  const permits = new PermitClients({ caps, log, grants })
  const queues = new CallQueues(redis, log)
  const deps: ProcessorDeps = {
    catalog,
    db,
    queues,
    running,
    replies: new ReplyOutbox(redis),
    providerKeys: new ProviderKeys(db, config.secrets.encryption, log),
    redis,
    headroom: new MemoryHeadroom(redis),
    caps,
    clock,
    health,
    telemetry,
    successes: new SuccessBatcher(redis, health, log),
    unanswered: new UnansweredRequests(),
    log,
    contact: config.upstreams.contact,
    attemptTimeoutMsMax: config.callTimeoutMs * ATTEMPT_SHARE,
    cache: new ResponseCache(cacheRedis, log),
    coalescer: new RequestCoalescer(redis),
    clientOf: (api) => clients.of(api),
    permitClientOf: (api, bucket) => permits.of(api, bucket),
    budgetOf: memoize(
      (api: Api) => api.slug,
      () => new RetryBudget(),
    ),
  }
  const workers = new Map(servedApis(config, [...catalog.values()]).map((api) => [api.slug, startWorker(api, deps)]))
  const stalled = new StalledJobs({ redis, workers: [...workers.values()], everyMs: STALLED_CHECK_MS, log })
  stalled.open()
  subscribe(listener, {
    // A lost message costs one request whose caller left.
    [channels.cancel]: (message) => running.cancel(message.split(' ')[1] ?? ''),
    [channels.wakeUp]: (message) => permits.onWakeUp(message),
  })
  log.info({ upstreams: workers.size }, 'workers started')
  return {
    log,
    finish: async () => {
      telemetry.drain()
      await unlessAway(redis, serveDrainingNodes(redis, log))
      const closing = Promise.all([stalled.close(), ...[...workers.values()].map((worker) => worker.close())])
      await unlessAway(
        redis,
        closeWorkers(closing, () => running.jobs),
      )
    },
    close: async () => {
      await settings.close()
      await queues.close()
      await telemetry.close()
      health.close()
      clock.close()
      await clients.close()
      await grants.close()
      await db.destroy()
      if (cacheRedis !== redis) await closeRedis(cacheRedis)
      listener.disconnect()
      await closeRedis(redis)
    },
  }
}

function servedApis({ upstreams }: Config, apis: Api[]): Api[] {
  const unknown = upstreams.only.find((slug) => !apis.some((api) => api.slug === slug))
  if (unknown) throw new ConfigError(`WORKER_UPSTREAMS names no upstream with "${unknown}"`)
  return upstreams.only.length === 0 ? apis : apis.filter(({ slug }) => upstreams.only.includes(slug))
}

function startWorker(api: Api, deps: ProcessorDeps): Worker {
  const { redis, log, running } = deps
  const worker = new Worker(
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
  worker.on('error', (error) => log.debug({ err: error, slug: api.slug }, 'worker error'))
  worker.on('failed', (job, error) => {
    log.warn({ err: error, slug: api.slug, callId: job?.id }, 'job failed')
    if (job?.name !== CALL_JOB) return
    replyToLostJob(deps, job, error).catch((cause) =>
      log.warn({ err: cause, callId: job.id }, 'failed to answer lost calls'),
    )
  })
  worker.on('lockRenewalFailed', (ids) => {
    for (const id of ids) worker.cancelJob(id, LOCK_LOST)
  })
  return worker
}

/** The connection subscribes again by itself after it was lost. */
function subscribe(listener: RedisConnection, handlers: Record<string, (message: string) => void>): void {
  listener.on('message', (channel, message) => handlers[channel]?.(message))
  listener.subscribe(...Object.keys(handlers)).catch(() => undefined)
}
