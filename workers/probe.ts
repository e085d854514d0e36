import { type Api, type Catalog, loadCatalog } from '../src/catalog/catalog.ts'
import { loadProcessConfig } from '../src/config.ts'
import { type Db, openDatabase } from '../src/db/database.ts'
import { deleteOldHealthChanges } from '../src/db/health-changes.ts'
import { drainHealthChanges } from '../src/health/drain-changes.ts'
import { HealthCache } from '../src/health/health-watch.ts'
import { createLog, type Log } from '../src/log.ts'
import { SettingsSync } from '../src/operator/upstream-settings.ts'
import { runProcess } from '../src/process.ts'
import { CallQueues } from '../src/queue/call-queue.ts'
import { PROBE_JOB, PROBE_JOB_OPTIONS, PROBE_SCHEDULER, type ProbeJob } from '../src/queue/probe-job.ts'
import { closeRedis, openRedis, type RedisConnection } from '../src/redis/connection.ts'
import { openTelemetry } from '../src/telemetry/telemetry.ts'

/** How often trials are looked for and change records are written down, milliseconds. */
const TICK_MS = 1_000

const CLEAN_EVERY_MS = 3_600_000

/** Upstreams that ask to be probed more rarely are tried again by calls and their scheduled probe alone. Seconds. */
const TRIAL_PROBE_SECONDS_MAX = 600

interface Sources {
  catalog: Catalog
  redis: RedisConnection
  db: Db
  queues: CallQueues
  health: HealthCache
  log: Log
  /** Time of the last trial asked for, by slug. */
  asked: Map<string, number>
  /** Upstreams with a scheduler, once they are known. */
  scheduled: Map<string, boolean>
}

/** The probe scheduler: makes probes, which workers run, and writes health changes down. Any number may run. */
await runProcess('probe', async () => {
  const config = loadProcessConfig('probe')
  const log = createLog(config.log, 'probe')
  const redis = openRedis(config.redisUrls, 'waiter', log)
  const db = openDatabase(config.databaseUrl, log)
  const catalog = await loadCatalog(config.upstreams.bySlug)
  const health = new HealthCache(redis, config.redisUrls, catalog.keys(), log)
  health.open()
  const settings = new SettingsSync({ config, log, catalog, db, redis })
  await settings.open()
  const telemetry = await openTelemetry(config, 'probe', { redis, log, inFlight: () => 0 })
  const queues = new CallQueues(redis, log)
  const sources: Sources = { catalog, redis, db, queues, health, log, asked: new Map(), scheduled: new Map() }
  await scheduleProbes(sources)
  settings.onChange(
    () => void scheduleProbes(sources).catch((error) => log.warn({ err: error }, 'probes not scheduled')),
  )
  health.onChange((slug) => void drain(sources, [slug]))
  const timers = [
    setInterval(() => void askForTrials(sources), TICK_MS),
    setInterval(() => void drain(sources, [...catalog.keys()]), TICK_MS),
    setInterval(() => void clean(sources), CLEAN_EVERY_MS),
  ]
  process.send?.({ ready: true })
  return {
    log,
    close: async () => {
      for (const timer of timers) clearInterval(timer)
      await settings.close()
      await telemetry.close()
      health.close()
      await queues.close()
      await closeRedis(redis)
      await db.destroy()
    },
  }
})

/** One scheduler per enabled upstream in its own queue; its name makes it one, whoever else sets it too. */
async function scheduleProbes({ catalog, queues, log, scheduled }: Sources): Promise<void> {
  for (const { slug, enabled, upstream } of catalog.values()) {
    if (scheduled.get(slug) === enabled) continue
    const queue = queues.of(slug)
    if (!enabled) await queue.removeJobScheduler(PROBE_SCHEDULER)
    else {
      const data: ProbeJob = { v: 1, slug }
      await queue.upsertJobScheduler(
        PROBE_SCHEDULER,
        { every: upstream.probe.everySeconds * 1_000 },
        { name: PROBE_JOB, data, opts: PROBE_JOB_OPTIONS },
      )
    }
    scheduled.set(slug, enabled)
  }
  log.info({ upstreams: catalog.size }, 'probes scheduled')
}

/** For each open breaker a probe at the time of its next trial, so that callers need not be the ones to try. */
async function askForTrials({ catalog, queues, health, asked, log }: Sources): Promise<void> {
  for (const api of catalog.values()) {
    const { trialAt, isTrialUnderWay } = health.of(api.slug)
    if (trialAt === undefined || isTrialUnderWay || !isTriedByProbe(api) || asked.get(api.slug) === trialAt) continue
    asked.set(api.slug, trialAt)
    const data: ProbeJob = { v: 1, slug: api.slug }
    const delay = Math.max(0, Math.ceil(trialAt - health.now()))
    await queues
      .of(api.slug)
      // Several schedulers ask for the same trial under the same id: one job.
      .add(PROBE_JOB, data, { ...PROBE_JOB_OPTIONS, delay, jobId: `trial-${trialAt}` })
      .catch((error) => {
        asked.delete(api.slug)
        log.debug({ err: error, slug: api.slug }, 'trial not scheduled')
      })
  }
}

function isTriedByProbe({ enabled, upstream }: Api): boolean {
  return enabled && upstream.probe.everySeconds <= TRIAL_PROBE_SECONDS_MAX
}

async function drain({ redis, db, log }: Sources, slugs: string[]): Promise<void> {
  for (const slug of slugs) {
    if (redis.status !== 'ready') return
    await drainHealthChanges(redis, db, slug).catch((error) =>
      log.warn({ err: error, slug }, 'health changes not written yet'),
    )
  }
}

async function clean({ db, log }: Sources): Promise<void> {
  await deleteOldHealthChanges(db).catch((error) => log.warn({ err: error }, 'old health changes not deleted'))
}
